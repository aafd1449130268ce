"""SIGINT and SIGTERM while an embedded worker drains: the program's handlers still run, and the drain is hurried."""

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
    """Call `hurry` at a SIGINT or SIGTERM inside the block, in addition to the program's own handler.

    A KeyboardInterrupt raised by that handler is re-raised when the block has ended, so that the drain can end in good
    order. Does nothing outside the main thread, which alone handles signals, and does not touch a signal whose default
    action ends the process.
    """
    raised: list[KeyboardInterrupt] = []

    def chained(previous: Handler) -> Handler:
        def handle(number: int, frame: FrameType | None) -> None:
            hurry()
            with suppress(RuntimeError):  # the signal may have interrupted a write to the stream that logs go to
                logger.warning("%s: stopping and releasing running jobs now", signal.Signals(number).name)
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
