"""What a flush of outcomes writes for flows: nothing for plain jobs, one statement for chains, and each count once."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.engine.apps import Apps
from tests.engine.recorder import Recorder
from tests.stores.recording import recorded
from windlass import StoreUnavailableError, Windlass
from windlass.domain.branches import Branch
from windlass.domain.clock import VirtualClock, monotonic
from windlass.domain.dependencies import Follows, GroupCounts
from windlass.domain.transition import succeeded
from windlass.engine import completer as completer_module
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Completer
from windlass.features import features_of, follow_ups_of
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step
from windlass.submission.stored_options import from_text
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    FlowDraft,
    assert_counted,
    claims_of,
    counts,
    due_times,
    joined,
    star,
)
from windlass.testing.contract.workbench import Workbench

FLUSH = 200


class RecordedDatabase:
    """A database that records the steps of the plans it runs, and may lose the answer to the first commit."""

    def __init__(self, database: Database, *, loses_answer: bool = False) -> None:
        self._database = database
        self._loses_answer = loses_answer
        self.steps: list[Step] = []

    async def arun(self, plan: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answer = await self._database.arun(recorded(self.steps, plan), *args, **kwargs)
        if self._loses_answer:
            self._loses_answer = False
            raise StoreUnavailableError("the connection broke after COMMIT")
        return answer


@pytest.fixture
def app(apps: Apps) -> Windlass:
    return apps()


@pytest.fixture
def bench(apps: Apps, app: Windlass) -> Iterator[Workbench]:
    del app  # it has migrated
    clock = VirtualClock()
    database = open_database(apps.url, clock)
    yield Workbench(database, clock)
    database.close()


def flush(bench: Workbench, follow_ups: FollowUps, *, loses_answer: bool = False) -> tuple[list[str], Recorder]:
    """End everything that is due as a worker does; return the names of the steps, and what was published."""
    claimed = bench.claim_all(FLUSH)
    database, published = RecordedDatabase(bench.database, loses_answer=loses_answer), Recorder([])

    async def write() -> None:
        completer = Completer(database, published, ErrorHandling(), follow_ups=follow_ups)  # type: ignore[arg-type]
        for claim in claimed.claims:
            transition = succeeded(claim, bench.times(), '"x"', holds_key=False)
            payload = claimed.payloads[claim.job_id]
            attempt = Attempt(claim, payload, monotonic(), from_text(payload.options), transition=transition)
            completer.finish(attempt)
        if loses_answer:
            with pytest.raises(StoreUnavailableError):
                await completer.tick()
        await completer.tick()
        await bench.database.aclose_loop()

    asyncio.run(write())
    return [step.name for step in database.steps], published


def test_flush_of_plain_jobs_takes_the_same_statements_with_flows_and_without(app: Windlass, bench: Workbench):
    """J8.7: a job that is in no flow pays nothing for them, also while the store has flows."""
    star(bench, 3)
    claims_of(bench)
    with_flows = follow_ups_of(features_of(app.parts))
    without_flows = [one for one in with_flows if one not in FOLLOW_UPS and "flow.followers" not in one.plan.__module__]
    assert len(without_flows) == len(with_flows) - len(FOLLOW_UPS)
    found = []
    for follow_ups in (without_flows, with_flows):
        bench.put(FLUSH)
        names, published = flush(bench, follow_ups)
        assert len(published.attempts) == FLUSH
        found.append(names)
    assert found[0] == found[1]


def test_flush_of_chain_heads_takes_one_statement_more(app: Windlass, bench: Workbench):
    """J8.7, J8.1: however many they are, one statement releases what follows them."""
    follow_ups = follow_ups_of(features_of(app.parts))
    bench.put(FLUSH)
    plain, _ = flush(bench, follow_ups)
    followers = [star(bench, 1)[1] for _ in range(FLUSH)]
    heads, published = flush(bench, follow_ups)
    assert heads == [*plain, "release_followers"]
    assert len(due_times(bench, followers)) == FLUSH
    assert [effects.work for effects in published.effects] == [{("default", 2)}]


def test_flush_of_members_takes_one_statement_more_until_the_group_ends(app: Windlass, bench: Workbench):
    """J8.7, J8.3: however many they are, one statement counts them."""
    follow_ups = follow_ups_of(features_of(app.parts))
    bench.put(FLUSH)
    plain, _ = flush(bench, follow_ups)
    flow = joined(bench, FLUSH + 1)
    members, _ = flush(bench, follow_ups)
    assert members == [*plain, "count_members"]
    assert counts(bench, flow.group) == GroupCounts(FLUSH + 1, FLUSH, 0)


def test_flush_of_jobs_whose_branches_are_chosen_takes_one_statement_more(app: Windlass, bench: Workbench):
    """J8.7, J8.2: however many they are, one statement releases their branches."""
    follow_ups = follow_ups_of(features_of(app.parts))
    bench.put(FLUSH)
    plain, _ = flush(bench, follow_ups)
    children = []
    for _ in range(FLUSH):
        draft = FlowDraft()
        head = draft.job()
        children.append(draft.job(head, Follows.SUCCESS))
        draft.store(bench, {head: (Branch(children[-1], "success"),)})
    heads, published = flush(bench, follow_ups)
    assert heads == [*plain, "release_branches"]
    assert len(due_times(bench, children)) == FLUSH
    assert sum(len(effects.branches) for effects in published.effects) == FLUSH


def flush_whose_answer_is_lost(bench: Workbench) -> None:
    """End two of three members; the first commit happens, and its answer does not come."""
    flow = joined(bench, 3)
    bench.database.run(_pause, flow.members[2])
    flush(bench, FOLLOW_UPS, loses_answer=True)
    assert counts(bench, flow.group) == GroupCounts(3, 2, 0)
    assert due_times(bench, [flow.join]) == []
    assert_counted(bench, flow.group)


def _pause(dialect: Dialect, job: str) -> Plan[None]:
    yield Step("pause_live", {"ids": dialect.ids([job])})


def test_member_is_counted_once_when_the_answer_of_its_commit_is_lost(bench: Workbench):
    """J8.3, J4.3: the count was committed with the outcome, and is not written again with it."""
    flush_whose_answer_is_lost(bench)


def test_build_that_counts_again_after_a_lost_answer_is_caught(bench: Workbench, monkeypatch: pytest.MonkeyPatch):
    """J8.3: a broken build: what an earlier try had committed is followed once more, and the join starts early."""
    sound = completer_module._apply

    def broken(dialect: Dialect, batch: Sequence[Attempt], ended: Any, *args: Any, **kwargs: Any) -> Plan[Any]:
        return _forgetful(sound(dialect, batch, ended, *args, **kwargs))

    monkeypatch.setattr(completer_module, "_apply", broken)
    with pytest.raises(AssertionError, match="GroupCounts"):
        flush_whose_answer_is_lost(bench)


def _forgetful(plan: Plan[Any]) -> Plan[Any]:
    """The plan; its first query of what is applied already returns nothing."""
    step, asked = next(plan), False
    while True:
        forgets = step.name == "applied" and not asked
        asked = asked or forgets
        try:
            step = plan.send([] if forgets else (yield step))
        except StopIteration as stop:
            return stop.value
