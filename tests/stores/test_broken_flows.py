"""Builds whose flows are broken on purpose: the contract finds each of them.

Two more are found where their moment can be brought about: counts that are repeated after a lost answer in
`tests/engine/test_flow_flushes.py`, settlement without the lock in `tests/stores/postgres/test_flow_counts.py`.
"""

import re
from collections.abc import Callable, Sequence

import pytest

from windlass.domain.clock import VirtualClock
from windlass.domain.dependencies import MemberChange
from windlass.stores import queries
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import cluster, flows
from windlass.stores.plans.flow_branches import UnreleasedJob
from windlass.testing.contract import FlowCountsContract, FlowsContract, Workbench

GUARD = r"AND (\w+\.)?due IS NULL"
Rule = Callable[[Workbench], None]


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, clock: VirtualClock) -> Callable[[], Workbench]:
    """Opens a store when it is called: after its statements were changed."""
    fixture = {"sqlite": "file_url", "postgres": "clean_pg_url"}[request.param]

    def bench() -> Workbench:
        database = open_database(str(request.getfixturevalue(fixture)), clock)
        request.addfinalizer(database.close)
        return Workbench(database, clock)

    return bench


def is_refused(rule: Rule, bench: Workbench) -> None:
    """Assert that a rule of the contract fails, by what it asserts and nothing else."""
    with pytest.raises(AssertionError):
        rule(bench)


def test_build_that_counts_recovered_attempts_is_caught(
    opened: Callable[[], Workbench], monkeypatch: pytest.MonkeyPatch
):
    """J8.3, J7.4: a broken build: the job of a lost node counts as ended, and will end again."""
    sound = cluster._bring_back

    def broken(dialect: Dialect, ids: Sequence[str], node: str) -> Plan[int]:
        count = yield from sound(dialect, ids, node)
        groups = yield Step("counted_for", {"ids": dialect.ids(ids)})
        yield from dialect.count_members([MemberChange(group, 0, number) for group, number in groups], wait=False)
        return count

    monkeypatch.setattr(cluster, "_bring_back", broken)
    is_refused(FlowCountsContract().test_attempt_that_ends_no_job_is_not_counted, opened())


def test_build_that_releases_without_its_guard_is_caught(
    opened: Callable[[], Workbench], monkeypatch: pytest.MonkeyPatch
):
    """J8.1: a broken build: what was released is released again, and is due anew."""
    for dialect in ("sqlite", "postgres"):
        statements = queries.load(dialect)
        sound = statements["release_followers"]
        text, guards = re.subn(GUARD, "", sound.sql)
        assert guards == 2, "the statement has changed: change the broken build too"
        monkeypatch.setitem(statements, "release_followers", sound._replace(sql=text))
    is_refused(FlowsContract().test_follower_is_released_once, opened())


@pytest.mark.parametrize(
    "rule",
    [
        FlowCountsContract().test_cascade_counts_the_members_that_it_cancels,
        FlowCountsContract().test_nested_groups_end_from_the_inside_out,
    ],
)
def test_build_whose_cascades_forget_joins_is_caught(
    opened: Callable[[], Workbench], monkeypatch: pytest.MonkeyPatch, rule: Rule
):
    """J8.3: a broken build: canceled members are not counted, and what follows their group waits for ever."""
    sound = flows._Wave._canceled

    def forgetting(wave: flows._Wave, follower: UnreleasedJob) -> None:
        sound(wave, follower._replace(group_id=None))

    monkeypatch.setattr(flows._Wave, "_canceled", forgetting)
    is_refused(rule, opened())
