"""Group commit: which callers share a transaction, and what becomes of them when one of them gives up."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.engine.apps import LONG, until
from windlass.domain.job import NewJob, SubmittedJob
from windlass.errors import StoreUnavailableError
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.database import StoreDataError
from windlass.stores.plans import jobs
from windlass.submission.caller_group import THREADS, CallerGroup, Signals, tasks_of
from windlass.submission.group_commit import Unit
from windlass.testing.contract.workbench import new_job

REFUSED = "refused"


class Commits:
    """Transactions of a duration chosen by the test, which refuse one kind of job."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)

    def commit(self, units: Sequence[Unit]) -> Verb[list[jobs.Answer]]:
        self.batches.append(len(units))
        self.begun.release()
        yield self._wait, self._await, ()
        if any(job.target == REFUSED for unit in units for job in unit):
            raise StoreDataError("refused")
        return [[SubmittedJob(job.id) for job in unit] for unit in units]

    def _wait(self) -> None:
        assert self.go_on.acquire(timeout=LONG)

    async def _await(self) -> None:
        await asyncio.to_thread(self._wait)


def unit(target: str = "shop:charge") -> list[NewJob]:
    return [new_job(target=target)]


@pytest.fixture
def commits() -> Commits:
    return Commits()


def test_threads_that_come_while_one_leads_share_the_next_transaction(commits: Commits):
    group = CallerGroup(commits.commit, THREADS)
    units = [unit() for _ in range(5)]
    with ThreadPoolExecutor(len(units)) as threads:
        leader = threads.submit(drive, group.submit(units[0]))
        assert commits.begun.acquire(timeout=LONG)
        others = [threads.submit(drive, group.submit(each)) for each in units[1:]]
        until(lambda: len(group._queue) == 4)
        commits.go_on.release(2)
        answers = [each.result(LONG) for each in (leader, *others)]
    assert commits.batches == [1, 4]
    assert answers == [[SubmittedJob(each[0].id)] for each in units]


async def test_tasks_that_come_while_one_leads_share_the_next_transaction(commits: Commits):
    group = CallerGroup(commits.commit, tasks_of(asyncio.get_running_loop()))
    units = [unit() for _ in range(5)]
    tasks = [asyncio.ensure_future(adrive(group.submit(each))) for each in units]
    commits.go_on.release(2)
    assert await asyncio.gather(*tasks) == [[SubmittedJob(each[0].id)] for each in units]
    assert commits.batches == [1, 4]


async def test_tasks_that_were_answered_together_are_together_again(commits: Commits):
    """Tasks that enqueue in a loop do not split into the first one and the rest."""
    group = CallerGroup(commits.commit, tasks_of(asyncio.get_running_loop()))
    commits.go_on.release(100)

    async def enqueue(times: int) -> None:
        for _ in range(times):
            await adrive(group.submit(unit()))

    await adrive(group.submit(unit()))
    await asyncio.gather(*(enqueue(4) for _ in range(6)))
    assert commits.batches == [1, 1, 6, 6, 6, 5]


async def test_jobs_of_others_are_stored_when_the_task_that_leads_is_cancelled(commits: Commits):
    group = CallerGroup(commits.commit, tasks_of(asyncio.get_running_loop()))
    first, leader, *others = [asyncio.ensure_future(adrive(group.submit(unit()))) for _ in range(4)]
    commits.go_on.release()
    await first
    await asyncio.to_thread(until, lambda: len(commits.batches) == 2)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    commits.go_on.release()
    assert all(await asyncio.wait_for(asyncio.gather(*others), LONG))
    assert commits.batches == [1, 3]


async def test_a_task_that_gives_up_while_it_waits_is_not_stored(commits: Commits):
    group = CallerGroup(commits.commit, tasks_of(asyncio.get_running_loop()))
    first, leaving, other = [asyncio.ensure_future(adrive(group.submit(unit()))) for _ in range(3)]
    await asyncio.sleep(0)
    leaving.cancel()
    commits.go_on.release(2)
    await asyncio.wait_for(asyncio.gather(first, other), LONG)
    assert leaving.cancelled()
    assert commits.batches == [1, 1]


@pytest.mark.parametrize("signals", [THREADS, None], ids=["threads", "tasks"])
def test_a_caller_that_gives_up_when_it_becomes_the_leader_passes_the_lead_on(
    commits: Commits, signals: Signals | None
):
    with asyncio.Runner() as runner:
        group = CallerGroup(commits.commit, signals or tasks_of(runner.get_loop()))
        leader, leaving, other = (group.submit(unit()) for _ in range(3))
        for verb in (leader, leaving, other):
            next(verb)
        with pytest.raises(StopIteration):
            leader.send(None)  # its commit is over: the second one leads
        with pytest.raises(KeyboardInterrupt):
            leaving.throw(KeyboardInterrupt)
        other.send(None)
        with pytest.raises(StopIteration):
            other.send(None)
    assert commits.batches == [1, 1]
    assert not group._led


def test_a_unit_that_the_store_refuses_fails_alone(commits: Commits):
    group = CallerGroup(commits.commit, THREADS)
    commits.go_on.release(100)
    with ThreadPoolExecutor(4) as threads:
        group._led = True  # until all of them wait
        waiting = [threads.submit(drive, group.submit(unit(target))) for target in ("a", REFUSED, "b")]
        until(lambda: len(group._queue) == 3)
        group._pass_on()
        failed = [each.exception(LONG) for each in waiting]
    assert sorted(type(error).__name__ for error in failed if error) == ["StoreDataError"]
    assert commits.batches == [3, 1, 1, 1]


def test_jobs_stored_along_with_those_of_an_interrupted_thread_may_be_there(commits: Commits):
    group = CallerGroup(commits.commit, THREADS)
    group._led = True
    other = group.submit(unit())
    leader = group.submit(unit())
    next(leader)
    next(other)
    group._pass_on()
    driven = leader.send(None)
    lead = driven[2][0]
    next(lead)
    with pytest.raises(KeyboardInterrupt):
        lead.throw(KeyboardInterrupt)
    with pytest.raises(StoreUnavailableError, match="was interrupted"):
        other.send(None)
    assert not group._led


async def test_a_shared_commit_that_is_cancelled_before_it_begins_passes_the_lead_on(commits: Commits):
    """J1.1: a program that cancels all tasks of its loop can enqueue there afterwards."""
    group = CallerGroup(commits.commit, tasks_of(asyncio.get_running_loop()))
    tasks = [asyncio.ensure_future(adrive(group.submit(unit()))) for _ in range(3)]
    await asyncio.to_thread(commits.begun.acquire)
    commits.go_on.release(3)
    while not group._leading:  # noqa: ASYNC110 - each step of the loop matters
        await asyncio.sleep(0)
    for leading in list(group._leading):
        leading.cancel()
    first, second, third = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), LONG)
    assert isinstance(second, asyncio.CancelledError)
    assert not isinstance(first, BaseException)
    assert not isinstance(third, BaseException)
    assert commits.batches == [1, 1]
