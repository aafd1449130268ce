"""Plans for signals: jobs that wait, the delivery to them, and their timeouts.

A job that waits is a row: WAITING, due at its deadline, and one in `windlass_signal_wait`. A delivery, a timeout and a
cancel each lock the job's row first and check that it is still WAITING, so one of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.job import NewJob
from windlass.domain.signal import NO_DEADLINE
from windlass.runtime.failpoints import reached
from windlass.stores.columns import SIGNAL_WAIT
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans.work_notices import notify_of_work

MOST_SIGNALED: Final = 1_000
"""Number of jobs that one transaction delivers a signal to."""
MOST_EXPIRED: Final = 500
"""Number of jobs whose wait one transaction ends because their signal did not come."""


class SignaledJob(NamedTuple):
    """A job that got a signal."""

    job_id: str
    queue: str
    priority: int
    target: str
    correlation_id: str | None
    key: str
    released: int
    """Whether it can run now; 0: it follows a job or group that has not ended."""


def store_waits(dialect: Dialect, rows: Sequence[NewJob]) -> Plan[None]:
    """Have new jobs wait for their signals."""
    waits = [(row.id, row.wait.key, row.wait.timeout_us, 1, None, None, None) for row in rows if row.wait is not None]
    if waits:
        yield Step("insert_waits", {"rows": json_text(waits)})
        yield Step("park_jobs", {"ids": dialect.ids([wait[0] for wait in waits])})


def deliver(
    dialect: Dialect, signal: str, by_whom: str | None, *, key: str | None = None, job_id: str | None = None
) -> Plan[list[SignaledJob]]:
    """Deliver a signal to those that wait for a key, up to `MOST_SIGNALED`, or to one job."""
    if job_id is None:
        found = yield Step("waiters_of_key", {"key": key}, literals={"most": MOST_SIGNALED})
    else:
        found = yield Step("waiter", {"id": job_id})
    signaled = [SignaledJob(*row) for row in found]
    if not signaled:
        return []
    chosen = {"ids": dialect.ids([job.job_id for job in signaled])}
    yield Step("deliver_signal", {**chosen, "signal": signal, "by_whom": by_whom})
    if (yield Step("release_waiters", chosen)) != len(signaled):
        raise RestartPlanError
    yield from notify_of_work(dialect, ((job.queue, job.priority) for job in signaled if job.released))
    reached("signal.before_commit")
    return signaled


def next_deadline(dialect: Dialect) -> Plan[int | None]:
    """Return the microseconds until the first deadline, negative if it has passed; None if no job has one."""
    del dialect
    first = yield Step("first_deadline", autocommit=True)
    if first is None:
        return None
    due, now = first
    if not isinstance(due, int | float) or due >= NO_DEADLINE:  # a damaged one is the last of all: no job has one
        return None
    return int(due - now)


def expire(dialect: Dialect) -> Plan[Effects]:
    """Make jobs claimable whose signal did not come in time: the attempts that follow fail. Up to `MOST_EXPIRED`."""
    del dialect
    rows = yield Step("expire_waits", literals={"most": MOST_EXPIRED})
    reached("wait.expired", lambda: bool(rows))
    return Effects(work=frozenset((queue, priority) for queue, priority in rows)) if rows else NO_EFFECTS


def park_again(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Have jobs wait again that a retry of their timeout has just made due at their next deadline."""
    yield Step("park_again", {"ids": dialect.ids(ids)})


def park_revived(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Have jobs wait again that were started over and whose signal has not come."""
    chosen = {"ids": dialect.ids(ids)}
    yield Step("park_jobs", chosen)
    yield Step("reopen_waits", chosen)


def close(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    """Close the waits of jobs that have ended, so that later signals do not look at them."""
    yield Step("close_waits", {"ids": dialect.ids(sorted(job.job_id for job in ended))})
    return NO_EFFECTS


def signals_of(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, tuple[str | None, str | None]]]:
    """Return the signals of jobs that awaited one, with their senders; None: it did not come."""
    rows = yield Step("waits_of_jobs", {"ids": dialect.ids(ids)})
    named = [dict(zip(SIGNAL_WAIT, row, strict=True)) for row in rows]
    return {row["job_id"]: (row["signal"], row["by_whom"]) for row in named}
