"""Verbs: what blocking and awaiting callers can both do, written once.

A verb is a generator. Wherever the two kinds of callers differ it yields a `Request`, which names a function for each
of them, and is sent the answer or thrown the error. `drive` runs a verb for a caller that blocks, `adrive` for one that
awaits; what a verb does in between is the same for both.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NO_KEYWORDS: Final[Mapping[str, Any]] = {}


class Request(NamedTuple):
    """Something to be done by whoever drives the verb."""

    blocking: Callable[..., Any]
    awaiting: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = NO_KEYWORDS


Verb = Generator[Request, Any, T]


def drive(verb: Verb[T]) -> T:
    """Run a verb to its end and return its result; blocks."""
    try:
        request = next(verb)
        while True:
            try:
                answer = request.blocking(*request.args, **request.kwargs)
            except BaseException as error:  # noqa: BLE001 - the verb's to handle, or to let through
                request = verb.throw(error)
            else:
                request = verb.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        verb.close()  # not when it is collected: an interrupt keeps it alive by its traceback


async def adrive(verb: Verb[T]) -> T:
    """Run a verb to its end on the running loop and return its result."""
    try:
        request = next(verb)
        while True:
            try:
                answer = await request.awaiting(*request.args, **request.kwargs)
            except BaseException as error:  # noqa: BLE001 - the verb's to handle, or to let through
                request = verb.throw(error)
            else:
                request = verb.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        verb.close()


def off_loop(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Verb[T]:
    """Call a function that may block: here, or on a thread for a caller that awaits."""
    answer: T = yield Request(function, partial(asyncio.to_thread, function), args, kwargs)
    return answer


def sleep(seconds: float) -> Verb[None]:
    """Let some time pass."""
    yield Request(threading.Event().wait, asyncio.sleep, (seconds,))
