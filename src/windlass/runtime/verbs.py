"""Verbs: operations that blocking and awaiting callers share, written once.

A verb is a generator. Where the two kinds of callers differ it yields a `Request`, which has a function for each, and
receives the answer or the error. `drive` runs a verb for a caller that blocks, `adrive` for one that awaits; everything
between the requests is the same for both.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Request = tuple[Callable[..., Any], Callable[..., Awaitable[Any]], tuple[Any, ...]]
"""A function that blocks, one that returns an awaitable, and the arguments of both. A plain tuple: every enqueue makes
some, and a class of its own would cost more than the rest of the driver."""
Verb = Generator[Request, Any, T]


def drive(verb: Verb[T]) -> T:
    """Run a verb to its end and return its result; blocks."""
    try:
        blocking, _, args = next(verb)
        while True:
            try:
                answer = blocking(*args)
            except BaseException as error:  # noqa: BLE001 - the verb handles it or lets it through
                blocking, _, args = verb.throw(error)
            else:
                blocking, _, args = verb.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        verb.close()  # not when it is collected: an interrupt keeps it alive by its traceback


async def adrive(verb: Verb[T]) -> T:
    """Run a verb to its end on the running loop and return its result."""
    try:
        _, awaiting, args = next(verb)
        while True:
            try:
                answer = await awaiting(*args)
            except BaseException as error:  # noqa: BLE001 - the verb handles it or lets it through
                _, awaiting, args = verb.throw(error)
            else:
                _, awaiting, args = verb.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        verb.close()


def off_loop(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Verb[T]:
    """Call a function that may block: here, or on a thread for a caller that awaits."""
    call = partial(function, *args, **kwargs)
    answer: T = yield call, partial(asyncio.to_thread, call), ()
    return answer


def sleep(seconds: float) -> Verb[None]:
    """Let some time pass."""
    yield threading.Event().wait, asyncio.sleep, (seconds,)
