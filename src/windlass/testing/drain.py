"""Run due jobs, in order, without a worker: the engine of a worker, driven step by step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import NamedTuple
from uuid import UUID

from windlass.app import Windlass
from windlass.domain.keys import check_queue
from windlass.domain.states import JobStatus
from windlass.engine.attempt import Attempt
from windlass.errors import ConfigurationError, InvalidOptionError, JobFailedError, WindlassError, WouldBlockLoopError
from windlass.features import features_of, follow_ups_of
from windlass.node import Node
from windlass.parts import Parts
from windlass.pipelines.delivery_attempts import deliver_due
from windlass.pipelines.relay_feature import routes
from windlass.runtime.executors import ThreadExecutor
from windlass.spi import JobExecutor
from windlass.stores.plans import operations, signal_waits
from windlass.testing.bodies import Bodies, CallerThread

LIMIT = 10_000
POLL_INTERVAL = 0.1


class EndlessDrainError(WindlassError):
    """Jobs are still due after as many attempts as a drain may run."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The numbers of attempts by outcome. True if any ran."""

    succeeded: int = 0
    failed: int = 0
    """Failed for good."""
    retried: int = 0
    """Failed, with another attempt to follow."""
    snoozed: int = 0
    canceled: int = 0
    """Canceled while they ran, so that their outcome did not count, or expired before they could start."""
    deferred: int = 0
    """Claimed just before their circuit opened; they wait until trials are allowed."""
    advanced: int = 0
    """Claims of executions that continue with a later claim: after a wait, or for another part of their items."""
    passed_over: int = 0
    """Of targets that this application does not know; they wait for a node that does."""

    @property
    def total(self) -> int:
        """All attempts."""
        return sum(getattr(self, field.name) for field in fields(self))

    def __bool__(self) -> bool:
        return self.total > 0

    def __repr__(self) -> str:
        counts = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return f"Drained({', '.join(f'{name}={count}' for name, count in counts if count)})"


def drain(
    app: Windlass, *, limit: int = LIMIT, queues: Iterable[str] | None = None, raise_errors: bool = False
) -> Drained:
    """Run every job that is due, one after another, in the order workers claim them, and in this thread.

    ```python
    charge.enqueue(42)
    assert drain(app).succeeded == 1
    ```

    Jobs enqueued meanwhile run too, and so do retries that are due at once. What a body raises fails its job, as
    always; with `raise_errors` the first such error is raised here, once it is written. More than `limit` attempts
    are an `EndlessDrainError`. At the end, what is to be delivered outside of the database (to sinks, providers of
    dead letters, places of publications) is tried once.
    """
    _check(app, limit)
    if on_a_loop():
        raise WouldBlockLoopError(
            "drain() would block the event loop that runs on this thread; write `await adrain(app)` instead"
        )
    thread = CallerThread()
    end = thread.drive(_drain(app.check_startable(), thread, _names(queues), limit, raise_errors=raise_errors))
    return end.drained()


async def adrain(
    app: Windlass, *, limit: int = LIMIT, queues: Iterable[str] | None = None, raise_errors: bool = False
) -> Drained:
    """Async twin of `drain`: coroutine functions run on this loop, the others on a thread, as in a worker."""
    _check(app, limit)
    parts = await asyncio.to_thread(app.check_startable)
    threads = ThreadExecutor(asyncio.get_running_loop())
    end = await _drain(parts, threads, _names(queues), limit, raise_errors=raise_errors)
    return end.drained()


async def _drain(
    parts: Parts, sync: JobExecutor, queues: Sequence[str] | None, limit: int, *, raise_errors: bool
) -> _End:
    bodies = Bodies(sync, parts.registry)
    by_hand = _ByHand(parts._replace(executors=bodies), queues)
    outcomes: Counter[str] = Counter()
    error: BaseException | None = None
    await by_hand.node.open()
    try:
        while error is None:
            bodies.raised = None
            ended = await by_hand.step(limit - outcomes.total())
            if ended is None:
                await by_hand.deliver()
                break
            outcomes[ended.outcome] += 1
            error = bodies.not_of_the_job
            if error is None and raise_errors and ended.error is not None:
                error = bodies.failure or ended.error
    finally:
        await by_hand.node.drain(0)
    return _End(outcomes, error)


class _End(NamedTuple):
    """How a drain ended. Its error is not raised on the loop, which a KeyboardInterrupt would break."""

    outcomes: Mapping[str, int]
    error: BaseException | None

    def drained(self) -> Drained:
        if self.error is not None:
            raise self.error
        return Drained(**self.outcomes)


class _Ended(NamedTuple):
    outcome: str
    error: JobFailedError | None
    """What a handle would raise, had this been the last attempt."""


class _ByHand:
    """A node that claims one job at a time, and finishes and writes it before the next."""

    def __init__(self, parts: Parts, queues: Sequence[str] | None) -> None:
        self._written: list[Attempt] = []
        self._parts, self._database = parts, parts.database
        self._follow_ups = follow_ups_of(features_of(parts))
        self.node = Node(parts._replace(written=self._written.extend), 1, queues)

    async def _finish_flows(self) -> None:
        """Carry out what the commit has left, as a service of a worker does."""
        engine = self.node.engine
        while unfinished := engine.unfinished.take():
            carried = await self._database.arun(operations.carry_on, unfinished, self._follow_ups)
            engine.publisher.publish(*carried)

    async def _expire_waits(self) -> None:
        """End waits whose deadline has passed on the test's clock, as a service of a worker does."""
        while ((yet := await self._database.aread(signal_waits.next_deadline)) is not None) and yet <= 0:
            self.node.engine.publisher.publish((), await self._database.arun(signal_waits.expire))

    async def deliver(self) -> None:
        """Try what is to be delivered outside of the database, as relays do."""
        if self._parts.pipelines is not None and (found := routes(self._parts.pipelines)):
            await deliver_due(self._database, found, self._parts.sanitizer.sanitize)

    async def step(self, left: int) -> _Ended | None:
        """Run the next job; return None when nothing is due."""
        await self._expire_waits()
        if not left:
            if await self.node.poller.anything_due():
                raise EndlessDrainError(_endless(self._written))
            return None
        if not await self.node.poller.claim_next():
            return None
        self._written.clear()
        freed = self.node.slots.freed
        while self.node.slots.attempts():
            freed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(freed.wait(), POLL_INTERVAL)
        await self.node.completer.flushed()
        await self._finish_flows()
        return _ended(self._written[0]) if self._written else _Ended("canceled", None)


def _ended(attempt: Attempt) -> _Ended:
    transition = attempt.verdict
    failure = transition.failure
    if transition.status is JobStatus.CANCELED:
        return _Ended("canceled", None)
    if failure is None:
        return _Ended(transition.outcome, None)
    outcome = (transition.reason or transition.outcome, failure.error, failure.error_class)
    return _Ended(transition.outcome, JobFailedError(UUID(transition.job_id), *outcome))


def _endless(last: Sequence[Attempt]) -> str:
    example = f" (the last one was {last[0].claim.target})" if last else ""
    return (
        f"drain() ran as many attempts as its limit allows, and jobs are still due{example}: does a job enqueue "
        "itself, or retry for ever without a backoff? Pass a higher limit if so many are meant"
    )


def _check(app: Windlass, limit: int) -> None:
    if limit < 1:
        raise InvalidOptionError(f"limit must be at least 1, got {limit!r}")
    if app.has_worker:
        raise ConfigurationError("a worker of this application runs its jobs already; stop the worker, or do not drain")


def _names(queues: Iterable[str] | None) -> list[str] | None:
    if isinstance(queues, str):
        raise InvalidOptionError(f"queues must be a list of names, got the text {queues!r}; write [{queues!r}]")
    return None if queues is None else [check_queue(name) for name in queues]


def on_a_loop() -> bool:
    """Return whether an event loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
