"""The operations of clients and nodes on a store, one short method each."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from windlass.client.views import attempt_of, job_of
from windlass.domain.admission import Holder
from windlass.domain.clock import VirtualClock
from windlass.domain.identity import new_job_id
from windlass.domain.job import Attempt, Claim, Job, NewJob, SubmittedJob
from windlass.domain.tags import tags_text
from windlass.domain.transition import Failure, Times, Transition, dead_letter, retry_at, succeeded
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import claims, cluster, jobs, queues, reads

SECOND = 1_000_000
LEASE = 15 * SECOND
NODE = "node-1"
THREAD_TIMEOUT = 60.0
"""Seconds after which threads that should have ended are given up."""

FAILURE = Failure("ValueError: no", "ValueError", "Traceback …")


class StopError(Exception):
    """Raised by a test before the commit."""


def new_job(queue: str = "default", priority: int = 2, **changes: Any) -> NewJob:
    """Return a job to submit, due now unless `changes` say otherwise."""
    plain = NewJob(new_job_id(), queue, "shop:charge", priority, "[[],{}]")
    if "tags" in changes:
        changes["tags"] = tags_text(changes["tags"])
    return plain._replace(**changes)


class Workbench:
    """Drives one store as clients and nodes would; a node called `NODE` is registered."""

    def __init__(self, database: Database, clock: VirtualClock) -> None:
        self.database = database
        self.clock = clock
        self.register(NODE)

    # ------------------------------------------------------------------ submitting

    def submit(self, *units: Sequence[NewJob]) -> list[jobs.Answer]:
        """Submit units in one transaction; return the answer to each."""
        names = sorted({job.queue for unit in units for job in unit})
        return self.database.run(jobs.submit, units, names).answers

    def submit_one(self, job: NewJob) -> Any:
        """Submit one job; return its `SubmittedJob`, or the `Conflict`."""
        (answer,) = self.submit([job])
        return answer[0] if isinstance(answer, list) else answer

    def put(self, count: int = 1, **changes: Any) -> list[str]:
        """Store jobs; return their ids."""
        made = [new_job(**changes) for _ in range(count)]
        (submitted,) = self.submit(made)
        assert submitted == [SubmittedJob(job.id) for job in made]
        return [job.id for job in made]

    # ------------------------------------------------------------------ claiming

    def heads(
        self, serves: Callable[[str], bool] = lambda _: True, knows: Callable[[str], bool] = lambda _: True
    ) -> queues.Heads:
        """Return what a node that serves these queues and knows these targets would check."""
        return self.database.read(queues.heads, serves, knows)

    def claim_all(
        self,
        wanted: int = 1000,
        *,
        node: str = NODE,
        chunk: int = 1000,
        boost: int = 0,
        knows: Callable[[str], bool] = lambda _: True,
    ) -> Claimed:
        """Claim from every queue for a node; `boost` in microseconds."""
        found = self.heads(knows=knows)
        request = ClaimRequest(node, found.heads, wanted, chunk, boost, found.limited)
        return self.database.run(claims.claim, request)

    def claim_from(self, found: queues.Heads) -> list[Claim]:
        """Claim by what was known earlier."""
        return self.database.run(claims.claim, ClaimRequest(NODE, found.heads, 1000, 1000, 0, found.limited)).claims

    def claim(self, wanted: int = 1000, *, node: str = NODE) -> list[Claim]:
        """Claim with defaults."""
        return self.claim_all(wanted, node=node).claims

    def claimed_job(self, **changes: Any) -> Claim:
        """Store one job and claim it."""
        self.put(**changes)
        (claim,) = self.claim()
        return claim

    # ------------------------------------------------------------------ completing

    def times(self) -> Times:
        """Return the times of an attempt that starts and ends now."""
        return Times(self.clock.micros(), self.clock.micros(), 0)

    def apply(self, *transitions: Transition, retried: bool = False) -> list[bool]:
        """Write transitions; return which were won."""
        return self.database.run(jobs.apply, transitions, retried=retried)

    def succeed(self, claim: Claim, result: str | None = '"x"', *, holds_key: bool = False) -> bool:
        """Finish a claim whose body returned."""
        return self.apply(succeeded(claim, self.times(), result, holds_key=holds_key))[0]

    def retry(self, claim: Claim, delay_us: int = 0) -> bool:
        """Write a claim whose body raised, with another attempt to follow."""
        return self.apply(retry_at(claim, self.times(), FAILURE, delay_us))[0]

    def fail(self, claim: Claim, *, holds_key: bool = False) -> bool:
        """Write a claim whose body raised for the last time."""
        return self.apply(dead_letter(claim, self.times(), FAILURE, "retry_exhausted", holds_key=holds_key))[0]

    # ------------------------------------------------------------------ the cluster

    def register(self, node: str) -> None:
        """Register a node."""
        self.database.run(cluster.register, cluster.NodeRow(node, "host", 1, "0", None), LEASE)

    def beat(self, node: str = NODE) -> bool:
        """Renew a node's lease."""
        return self.database.run(cluster.beat, node, LEASE, 1)

    def lose(self, *dead: str, alive: Sequence[str] = ()) -> int:
        """Let the leases of `dead` expire while `alive` beat; return how many nodes were marked lost."""
        self.clock.advance(LEASE / SECOND + 1)
        for node in alive:
            self.beat(node)
        count = self.database.run(cluster.mark_lost)
        assert count >= len(dead)
        return count

    def recover(self, budget: int = 3) -> cluster.Recovered:
        """Run one pass of recovery."""
        return self.database.run(cluster.recover, budget)

    # ------------------------------------------------------------------ looking

    def job(self, job_id: str) -> Job:
        """Return a job as users see it, with stored texts for arguments and result."""
        stored = self.database.read(reads.get, job_id)
        assert stored is not None, f"job {job_id} is not stored"
        return job_of(stored, lambda _, text: ((text,), {}), lambda _, text: text)

    def exists(self, job_id: str) -> bool:
        """Return whether a job is stored."""
        return self.database.read(reads.get, job_id) is not None

    def history(self, job_id: str) -> list[Attempt]:
        """Return a job's attempts."""
        rows = self.database.read(reads.history, job_id)
        assert rows is not None, f"job {job_id} is not stored"
        return [attempt_of(row) for row in rows]

    def outcomes(self, job_id: str) -> list[tuple[int, str]]:
        """Return a job's history in short: attempt number and outcome."""
        return [(attempt.number, attempt.outcome) for attempt in self.history(job_id)]

    def seen(self, job_id: str) -> tuple[Job, list[Attempt]]:
        """Return all that is visible of a job: equal before and after a write that was refused."""
        return self.job(job_id), self.history(job_id)

    def holder(self, business_key: str) -> Holder | None:
        """Return the holder of a business key."""
        return self.database.read(_holders, [business_key]).get(business_key)

    def first_job(self, idempotency_key: str) -> str | None:
        """Return the job that an idempotency key stands for."""
        return self.database.read(_keys, [idempotency_key]).get(idempotency_key)

    def script(self, text: str) -> None:
        """Run a statement of the test."""
        self.database.run(_script, text)


def _holders(dialect: Dialect, keys: Sequence[str]) -> Plan[dict[str, Holder]]:
    found = yield from dialect.find_holders(keys)
    return found


def _keys(dialect: Dialect, keys: Sequence[str]) -> Plan[dict[str, str]]:
    found = yield from dialect.find_keys(keys)
    return found


def _script(dialect: Dialect, text: str) -> Plan[None]:
    del dialect
    yield Step(SCRIPT, {"text": text})


class StoreContract:
    """Base of every part of the contract; `store` and `clock` are fixtures of the subclass."""

    @pytest.fixture
    def bench(self, store: Database, clock: VirtualClock) -> Workbench:
        """Return the store with its operations."""
        return Workbench(store, clock)


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run each action on a thread of its own, all started at the same moment; return their results in order."""
    gate = threading.Barrier(len(actions))

    def through_the_gate(action: Callable[[], Any]) -> Any:
        gate.wait(THREAD_TIMEOUT)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        futures = [pool.submit(through_the_gate, action) for action in actions]
        return [future.result(THREAD_TIMEOUT) for future in futures]


def text_of_size(size: int) -> str:
    """JSON arguments of about `size` bytes."""
    return json.dumps([["x" * size], {}])
