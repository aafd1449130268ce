"""SIGINT and SIGTERM while an embedded worker drains: they belong to the program, and also hurry the drain."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from windlass import loggers

logger = loggers.logger("windlass.worker")

Handler = Callable[[int, FrameType | None], object]


@contextmanager
def hurried_by_signals(hurry: Callable[[], None]) -> Iterator[None]:
    """Call `hurry` at a SIGINT or SIGTERM inside the block, besides the handler that the program has for it.

    A KeyboardInterrupt raised by that handler comes out when the block has ended, so that what is hurried can end in
    good order. Does nothing outside of the main thread, which alone handles signals, and leaves a signal alone that
    ends the process.
    """
    raised: list[KeyboardInterrupt] = []

    def chained(previous: Handler) -> Handler:
        def handle(number: int, frame: FrameType | None) -> None:
            hurry()
            with suppress(RuntimeError):  # it may have struck amid a write to the very stream that logs go to
                logger.warning("%s: running jobs are stopped and released now", signal.Signals(number).name)
            try:
                previous(number, frame)
            except KeyboardInterrupt as error:
                raised.append(error)

        return handle

    replaced: dict[signal.Signals, tuple[Handler, Handler]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            previous = signal.getsignal(number)
            if callable(previous):
                ours = chained(previous)
                replaced[number] = (previous, ours)
                signal.signal(number, ours)
    try:
        yield
    finally:
        for number, (previous, ours) in replaced.items():
            if signal.getsignal(number) is ours:
                signal.signal(number, previous)
    if raised:
        raise raised[0]
