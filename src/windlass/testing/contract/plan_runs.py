"""Plan runs: in one transaction, undone as a whole, and repeated after a lost race."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from windlass.domain.admission import Holder
from windlass.domain.job import NewJob, SubmittedJob
from windlass.stores.database import MOST_RESTARTS, Database
from windlass.stores.dialect import Dialect
from windlass.stores.plan import BrokenPromiseError, Plan, RestartPlanError, Step
from windlass.stores.plans import jobs
from windlass.testing.contract.workbench import StoreContract, Workbench, new_job


class OtherError(Exception):
    """An error of a plan that is not the database's."""


def _run(database: Database, plan: Callable[..., Plan[Any]], *args: Any) -> Any:
    return database.run(plan, *args)


def _arun(database: Database, plan: Callable[..., Plan[Any]], *args: Any) -> Any:
    async def main() -> Any:
        try:
            return await database.arun(plan, *args)
        finally:
            await database.aclose_loop()

    return asyncio.run(main())


sync_and_async = pytest.mark.parametrize("run", [_run, _arun], ids=["sync", "async"])


class PlanRunsContract(StoreContract):
    """What a store guarantees to the author of a plan."""

    @sync_and_async
    def test_two_plans_commit_together_or_not_at_all(self, bench: Workbench, run: Callable[..., Any]) -> None:
        """J4.3: follow-ups share the transaction of the write they belong to."""
        first, second = new_job(), new_job()
        assert run(bench.database, _both, first, second) == [SubmittedJob(first.id), SubmittedJob(second.id)]
        third = new_job()
        with pytest.raises(OtherError):
            run(bench.database, _both, third, None)
        assert [bench.exists(job.id) for job in (first, second, third)] == [True, True, False]

    @sync_and_async
    def test_a_plan_that_lost_a_race_starts_over(self, bench: Workbench, run: Callable[..., Any]) -> None:
        """J2.1: it is undone and run again from its first step, so what it wrote before is written once."""
        runs = count(1)
        job = new_job(business_key="order:7")
        assert run(bench.database, _losing, job, runs, 3) == [[SubmittedJob(job.id)]]
        assert next(runs) == 4
        assert bench.holder("order:7") == Holder(job.id, "PENDING")

    @sync_and_async
    def test_a_plan_that_always_loses_raises(self, bench: Workbench, run: Callable[..., Any]) -> None:
        """J2.1: no caller waits for ever; nothing is left of it, and others go on."""
        runs = count(1)
        job = new_job()
        with pytest.raises(RestartPlanError):
            run(bench.database, _losing, job, runs, MOST_RESTARTS + 1)
        assert next(runs) == MOST_RESTARTS + 1
        assert not bench.exists(job.id)
        assert bench.submit_one(job) == SubmittedJob(job.id)

    @sync_and_async
    def test_a_plan_without_steps_needs_no_database(self, bench: Workbench, run: Callable[..., Any]) -> None:
        """J4.3: an empty flush is answered at once."""
        assert run(bench.database, jobs.apply, []) == []

    @sync_and_async
    @pytest.mark.parametrize("first", [Step("store_now", alone=True), Step("store_now", autocommit=True)])
    def test_a_step_that_an_earlier_one_ruled_out_is_refused(
        self, bench: Workbench, run: Callable[..., Any], first: Step
    ) -> None:
        """J4.3: a plan that runs without a transaction cannot yield more steps than it promised."""
        with pytest.raises(BrokenPromiseError, match=r"the step insert_queue .* store_now"):
            run(bench.database, _two_steps, first)
        assert run(bench.database, _two_steps, first._replace(alone=False, autocommit=False)) == [1]


def _both(dialect: Dialect, first: NewJob, second: NewJob | None) -> Plan[list[SubmittedJob]]:
    (one,) = (yield from jobs.submit(dialect, [[first]], ["default"])).answers
    if second is None:
        raise OtherError
    (two,) = (yield from jobs.submit(dialect, [[second]], ["default"])).answers
    assert isinstance(one, list)
    assert isinstance(two, list)
    return [*one, *two]


def _two_steps(dialect: Dialect, first: Step) -> Plan[list[int]]:
    del dialect
    yield first
    counts: list[int] = yield Step("insert_queue", rows=[{"name": "new"}])
    return counts


def _losing(dialect: Dialect, job: NewJob, runs: Any, wins_at: int) -> Plan[list[jobs.Answer]]:
    answers = (yield from jobs.submit(dialect, [[job]], ["default"])).answers
    if next(runs) < wins_at:
        raise RestartPlanError
    return answers
