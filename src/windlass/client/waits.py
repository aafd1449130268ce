"""Verbs that wait: for a job's outcome, from outside and inside of jobs, and with a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar
from uuid import UUID

from windlass import loggers
from windlass.context import JobContext
from windlass.domain.job import Outcome
from windlass.errors import WouldBlockLoopError
from windlass.runtime.verbs import Verb, adrive, drive

T = TypeVar("T")

logger = loggers.logger("windlass.job")

SECOND_LOOK = 1.0
"""Seconds after which a waiting job checks again whether its worker's slots are all taken."""
_warned: Final[deque[tuple[UUID, int]]] = deque(maxlen=1000)
"""The latest attempts that were warned about."""


def outcome_of(future: Future[Outcome], limit: float | None) -> Verb[Outcome]:
    """Wait for an outcome; `TimeoutError` after `limit` seconds, and the future can be waited for again."""
    outcome: Outcome = yield Future.result, _outcome_on_loop, (future, limit)
    return outcome


async def _outcome_on_loop(future: Future[Outcome], limit: float | None) -> Outcome:
    return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), limit)


def outcome_within_job(
    future: Future[Outcome], limit: float | None, context: JobContext, awaited: Outcome, slots: Callable[[], int | None]
) -> Verb[Outcome]:
    """`outcome_of` in a job's body: warns, at once or a little later, if all slots of its worker are taken."""
    _warn_if_full(context, awaited, slots())
    if limit is None or limit > SECOND_LOOK:
        try:
            return (yield from outcome_of(future, SECOND_LOOK))
        except TimeoutError:
            _warn_if_full(context, awaited, slots())
        limit = None if limit is None else limit - SECOND_LOOK
    return (yield from outcome_of(future, limit))


def _warn_if_full(context: JobContext, awaited: Outcome, slots: int | None) -> None:
    """Warn once per attempt: if the awaited job can only run on this worker, neither may ever finish."""
    attempt = (context.job_id, context.fence)
    if slots is None or attempt in _warned:
        return
    _warned.append(attempt)
    logger.warning(
        "job %s (%s) waits for job %s (%s) while all %d slots of its worker are taken: if no other worker runs it, "
        "both wait until the timeout; use on_success=, or more concurrency",
        *(context.job_id, context.target, awaited.job_id, awaited.target, slots),
    )


def soon(seconds: float, verb: Callable[[], Verb[T]]) -> Verb[T | None]:
    """Run a verb; return None if it fails, or takes longer than so many seconds."""
    found: T | None = yield _soon_on_thread, _soon_on_loop, (seconds, verb)
    return found


def _soon_on_thread(seconds: float, verb: Callable[[], Verb[T]]) -> T | None:
    found: list[T] = []

    def ask() -> None:
        with contextlib.suppress(Exception):
            found.append(drive(verb()))

    context = contextvars.copy_context()
    asking = threading.Thread(target=context.run, args=(ask,), name="windlass-explain", daemon=True)
    asking.start()
    asking.join(seconds)
    return found[0] if found else None


async def _soon_on_loop(seconds: float, verb: Callable[[], Verb[T]]) -> T | None:
    with contextlib.suppress(Exception):
        return await asyncio.wait_for(adrive(verb()), seconds)
    return None


def refuse_on_a_loop(verb: str) -> Verb[None]:
    """Raise `WouldBlockLoopError` for a caller that would block the event loop of its thread."""
    yield _refuse_on_a_loop, _allow, (verb,)


def _refuse_on_a_loop(verb: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlockLoopError(
        f"{verb}() would block the event loop that runs on this thread, and with it perhaps the very job; "
        f"write `await handle.a{verb}()` instead"
    )


async def _allow(verb: str) -> None:
    """Do nothing: a caller that awaits blocks no loop."""
