"""Signals: each waiting job is released once, by a signal or its timeout; a signal without a waiter is dropped."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from windlass.domain.ended import Ended
from windlass.domain.signal import NO_DEADLINE, SignalWait
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import dead_letter, parked
from windlass.flow import awaited_signals, followers
from windlass.stores.columns import SIGNAL_WAIT
from windlass.stores.dialect import Dialect
from windlass.stores.ending import end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import archive, jobs, moves, signal_waits
from windlass.stores.plans.signal_waits import SignaledJob
from windlass.submission.stored_options import StoredWait, with_wait
from windlass.testing.contract.flow_setup import FlowDraft, due_times, finish, status_of, statuses
from windlass.testing.contract.workbench import FAILURE, SECOND, StoreContract, Workbench, at_once

S = JobStatus
KEY: Final = "order:7:approved"
SIGNAL: Final = '{"outcome":"approved"}'
TIMEOUT: Final = 60
FOLLOW_UPS: Final = (*awaited_signals.feature().follow_ups, *followers.feature(60.0).follow_ups)


class SignalsContract(StoreContract):
    """What becomes of jobs that wait for a signal."""

    def test_waiting_job_is_not_claimed_until_its_signal(self, bench: Workbench) -> None:
        """J8.5: parked in WAITING; the signal makes it due now."""
        (job,) = put(bench)
        assert (status_of(bench, job), bench.claim()) == (S.WAITING, [])
        assert [one.job_id for one in deliver(bench)] == [job]
        assert (status_of(bench, job), due_times(bench, [job])) == (S.PENDING, [bench.clock.micros()])
        assert [claim.job_id for claim in bench.claim()] == [job]
        assert signals(bench, job) == {job: (SIGNAL, "ops")}

    def test_every_waiter_of_a_key_is_released_once(self, bench: Workbench) -> None:
        """J8.5: returns how many; a second signal finds no waiter; waiters of other keys stay."""
        mine, (other,) = put(bench, 3), put(bench, key="order:8")
        assert sorted(one.job_id for one in deliver(bench)) == mine
        assert deliver(bench) == []
        assert (statuses(bench, mine), status_of(bench, other)) == ({S.PENDING: 3}, S.WAITING)

    def test_signal_without_a_waiter_is_dropped(self, bench: Workbench) -> None:
        """J8.5: the answer is 0 and nothing is kept."""
        assert deliver(bench) == []
        (job,) = put(bench)
        assert status_of(bench, job) is S.WAITING

    def test_senders_at_the_same_moment_share_the_waiters(self, bench: Workbench) -> None:
        """J8.5: the sum of their answers is the number of waiters, and each waiter has one signal."""
        waiters = put(bench, 40)
        answers = at_once(*(partial(deliver, bench, by_whom=f"sender {number}") for number in range(4)))
        assert sorted(one.job_id for answer in answers for one in answer) == sorted(waiters)
        senders = {one.job_id: f"sender {number}" for number, answer in enumerate(answers) for one in answer}
        assert {job: by for job, (_, by) in signals(bench, *waiters).items()} == senders

    def test_job_is_signaled_by_its_id(self, bench: Workbench) -> None:
        """J8.5: `app.signal(id)`: that one alone."""
        first, second = put(bench, 2)
        assert [one.key for one in deliver(bench, key=None, job_id=second)] == [KEY]
        assert deliver(bench, key=None, job_id=second) == []
        assert (status_of(bench, first), status_of(bench, second)) == (S.WAITING, S.PENDING)

    def test_wait_without_a_timeout_has_no_deadline(self, bench: Workbench) -> None:
        """J8.5: for ever."""
        (job,) = put(bench, timeout_us=None)
        bench.clock.advance(1_000_000_000)
        assert (due_times(bench, [job]), bench.database.read(signal_waits.next_deadline)) == ([NO_DEADLINE], None)
        assert (expire(bench), bench.job(job).due_at) == (0, None)

    def test_overdue_waits_become_claimable(self, bench: Workbench) -> None:
        """J8.5: at the deadline and not before; a signal that comes later is not theirs."""
        (job,) = put(bench)
        bench.clock.advance(TIMEOUT - 1)
        assert (expire(bench), bench.database.read(signal_waits.next_deadline)) == (0, SECOND)
        bench.clock.advance(1)
        assert (expire(bench), deliver(bench), status_of(bench, job)) == (1, [], S.PENDING)
        (claim,) = bench.claim()
        assert (claim.job_id, signals(bench, job)) == (job, {job: (None, None)})

    def test_nodes_share_overdue_waits(self, bench: Workbench) -> None:
        """J8.5: each is ended by one of them."""
        put(bench, 30)
        bench.clock.advance(TIMEOUT)
        at_once(*[partial(expire, bench)] * 3)
        assert (expire(bench), len(bench.claim())) == (0, 30)

    def test_timeout_with_retries_left_waits_again(self, bench: Workbench) -> None:
        """J8.5: RUNNING to WAITING in one transaction, and a signal finds it."""
        (job,) = put(bench)
        bench.clock.advance(TIMEOUT)
        expire(bench)
        (claim,) = bench.claim()
        transition = parked(claim, bench.times(), FAILURE, (TIMEOUT + 5) * SECOND)
        assert bench.apply(transition) == [True]
        assert (status_of(bench, job), bench.job(job).attempts) == (S.WAITING, 1)
        assert bench.database.read(signal_waits.next_deadline) == (TIMEOUT + 5) * SECOND
        assert bench.apply(transition) == [False]
        assert len(deliver(bench)) == 1

    def test_canceled_waiter_gets_no_signal(self, bench: Workbench) -> None:
        """J2.2: from WAITING; its wait is closed with it."""
        (job,) = put(bench)
        (canceled,) = bench.database.run(moves.cancel, [job], FOLLOW_UPS).ended
        assert (canceled.left, deliver(bench), opened(bench, job)) == (S.WAITING, [], False)
        assert bench.database.run(moves.cancel, [job], FOLLOW_UPS).ended == []

    def test_waiting_job_cannot_be_paused(self, bench: Workbench) -> None:
        """J2.3: nothing changes."""
        (job,) = put(bench)
        assert (bench.database.run(moves.pause, [job]), status_of(bench, job)) == ([], S.WAITING)

    def test_retry_of_a_timed_out_job_waits_again(self, bench: Workbench) -> None:
        """J2.4, J8.5: from now on, with its whole timeout; its wait was closed meanwhile."""
        (job,) = put(bench)
        timed_out(bench)
        assert (status_of(bench, job), opened(bench, job)) == (S.FAILED, False)
        bench.database.run(moves.retry, [job], FOLLOW_UPS)
        assert (status_of(bench, job), opened(bench, job)) == (S.WAITING, True)
        assert bench.database.read(signal_waits.next_deadline) == TIMEOUT * SECOND
        assert len(deliver(bench)) == 1

    def test_retry_of_a_signaled_job_keeps_its_signal(self, bench: Workbench) -> None:
        """J8.5: after a failure of the body it does not wait again."""
        (job,) = put(bench)
        deliver(bench)
        (claim,) = bench.claim()
        bench.fail(claim)
        bench.database.run(moves.retry, [job], FOLLOW_UPS)
        assert (status_of(bench, job), signals(bench, job)) == (S.PENDING, {job: (SIGNAL, "ops")})

    def test_archive_keeps_wait_and_signal(self, bench: Workbench) -> None:
        """J8.5, J7.7: and gives them back with a dead letter that is retried."""
        signaled, never = put(bench, 2)
        deliver(bench, key=None, job_id=signaled)
        for claim in bench.claim():
            bench.fail(claim)
        timed_out(bench)
        assert bench.database.run(archive.move, [signaled, never]).jobs == 2
        assert signals(bench, signaled, never) == {}
        bench.database.run(moves.retry, [signaled, never], FOLLOW_UPS)
        assert signals(bench, signaled, never) == {signaled: (SIGNAL, "ops"), never: (None, None)}
        assert (status_of(bench, signaled), status_of(bench, never)) == (S.PENDING, S.WAITING)

    # ------------------------------------------------------------------ followers

    def test_follower_waits_from_its_release_on(self, bench: Workbench) -> None:
        """J8.5: WAITING from the start; the timeout begins with its turn."""
        head, follower = flow(bench)
        bench.clock.advance(2 * TIMEOUT)
        assert (status_of(bench, follower), due_times(bench, [follower]), expire(bench)) == (S.WAITING, [], 0)
        finish(bench, bench.claim())
        assert due_times(bench, [follower]) == [bench.clock.micros() + TIMEOUT * SECOND]
        assert (status_of(bench, head), len(deliver(bench))) == (S.SUCCEEDED, 1)

    def test_follower_is_signaled_before_its_turn(self, bench: Workbench) -> None:
        """J8.5: the signal is kept, and it runs as soon as it is released."""
        _, follower = flow(bench)
        (signaled,) = deliver(bench)
        assert (signaled.released, status_of(bench, follower), due_times(bench, [follower])) == (0, S.PENDING, [])
        finish(bench, bench.claim())
        assert [claim.job_id for claim in bench.claim()] == [follower]

    def test_canceled_follower_is_revived_waiting(self, bench: Workbench) -> None:
        """J2.4, J8.5: unreleased, and its wait is open again; a signal before that found no waiter."""
        head, follower = flow(bench)
        finish(bench, bench.claim(), fails=True, follow_ups=FOLLOW_UPS)
        assert (status_of(bench, follower), opened(bench, follower), deliver(bench)) == (S.CANCELED, False, [])
        bench.database.run(moves.retry, [head], FOLLOW_UPS)
        assert (status_of(bench, follower), due_times(bench, [follower])) == (S.WAITING, [])
        assert len(deliver(bench)) == 1

    def test_follower_with_a_signal_is_revived_with_it(self, bench: Workbench) -> None:
        """J2.4, J8.5: what came stays with the job."""
        head, follower = flow(bench)
        deliver(bench)
        finish(bench, bench.claim(), fails=True)
        bench.database.run(moves.retry, [head], FOLLOW_UPS)
        assert status_of(bench, follower) is S.PENDING
        finish(bench, bench.claim())
        assert [claim.job_id for claim in bench.claim()] == [follower]


def put(
    bench: Workbench, count: int = 1, *, key: str = KEY, timeout_us: int | None = TIMEOUT * SECOND, **changes: Any
) -> list[str]:
    """Store jobs that wait for a signal; return their ids."""
    return bench.put(count, **awaiting(key, timeout_us), **changes)


def awaiting(key: str = KEY, timeout_us: int | None = TIMEOUT * SECOND) -> dict[str, Any]:
    """Return what a new job that waits differs in."""
    return {"wait": SignalWait(key, timeout_us), "options": with_wait(None, StoredWait(key, timeout_us))}


def flow(bench: Workbench) -> tuple[str, str]:
    """Store a job and a follower that waits for a signal; return their ids."""
    draft = FlowDraft()
    head = draft.job()
    follower = draft.job(head, delay_us=TIMEOUT * SECOND, **awaiting())
    draft.store(bench)
    return head, follower


def deliver(
    bench: Workbench, *, key: str | None = KEY, job_id: str | None = None, by_whom: str | None = "ops"
) -> list[SignaledJob]:
    """Send a signal; return the jobs that got it."""
    return bench.database.run(signal_waits.deliver, SIGNAL, by_whom, key=key, job_id=job_id)


def expire(bench: Workbench) -> int:
    """End overdue waits; return how many levels of queues have new work."""
    return len(bench.database.run(signal_waits.expire).work)


def timed_out(bench: Workbench) -> None:
    """Let the waits of all jobs time out, with no retries left."""
    bench.clock.advance(TIMEOUT)
    expire(bench)
    claims = bench.claim()
    failed = [dead_letter(claim, bench.times(), FAILURE, "signal_timeout", holds_key=False) for claim in claims]
    bench.database.run(_finish, failed)


def _finish(dialect: Dialect, failed: list[Any]) -> Plan[None]:
    yield from jobs.apply(dialect, failed, alone=False)
    payloads = yield from dialect.load([one.job_id for one in failed])
    ended = [Ended(one.job_id, "shop:charge", "default", 2, Move.FAIL, payload=payloads[one.job_id]) for one in failed]
    yield from end(dialect, ended, FOLLOW_UPS)


def signals(bench: Workbench, *ids: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the signals of jobs, with their senders."""
    return bench.database.read(signal_waits.signals_of, ids)


def opened(bench: Workbench, job_id: str) -> bool:
    """Return whether the wait of a job is open."""

    def plan(dialect: Dialect) -> Plan[bool]:
        (row,) = yield Step("waits_of_jobs", {"ids": dialect.ids([job_id])})
        return bool(row[SIGNAL_WAIT.index("open")])

    return bench.database.run(plan)
