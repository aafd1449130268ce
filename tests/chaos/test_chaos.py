"""Real workers, killed, stopped, and cut off from their database, over a mix of everything; the oracle judges.

`make chaos` runs the same at any size. Here are its short form and, for `make soak`, builds broken on purpose, which it
must find: whether a run meets the moment at which such a build goes wrong is a matter of chance. Without
chance they are found by the model, which goes through every order of events (`test_model.py`).
"""

from itertools import pairwise
from typing import Any

import pytest

from tests.chaos.conftest import Chaos
from tests.chaos.faults import Options
from tests.chaos.report import recoveries, table
from tests.support.pipeline_invariants import check_executions

# One at a time: each has several processes of its own.
pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(900)]

SHORT: dict[str, Any] = {"seed": 20, "jobs": 600, "kills": 3, "stops": 1, "naps": 1, "jumps": 1, "pace": 0.5}
LIMITED: dict[str, Any] = {"seed": 3, "mix": "limited", "jobs": 400, "pace": 1.0}
PIPELINES: dict[str, Any] = {"mix": "pipelines", "seed": 5, "jobs": 60, "kills": 2, "stops": 1, "naps": 1, "pace": 0.5}
NO_FAULTS: dict[str, Any] = {
    "kills": 0,
    "stops": 0,
    "naps": 0,
    "jumps": 0,
    "restarts": 0,
    "cuts": 0,
    "submitter_kills": 0,
}
LONG_BODIES: dict[str, Any] = {**NO_FAULTS, "stops": 3, "mix": "long", "jobs": 70, "concurrency": 8, "pace": 1.0}
"""Few slots, so that every worker is at work when it is stopped."""


def test_a_mix_of_everything_survives_kills_stops_restarts_and_clock_jumps(chaos: Chaos, store: str):
    """J7.2, J7.3, J7.4, J7.8, J2.1, J4.3 (P9.C5, P9.C5b): every accepted job ends once, by a run that held it."""
    driver, facts = chaos(Options(store=store, **SHORT))
    violations = driver.judge(facts)
    assert violations == [], "\n".join(map(str, violations[:20]))
    assert len(facts.tables.done) >= SHORT["jobs"] * 0.9  # some enqueues met no database, and promised nothing
    faults = driver.standing.faults
    assert (faults["kill"], faults["stop"], faults["nap"], faults["jump"]) == (3, 1, 1, 1)
    assert faults["restart"] == faults["cut"] == (1 if store == "postgres" else 0)
    assert any(row.outcome == "lost" for row in facts.tables.history)
    assert all(seconds > 0 for seconds in recoveries(facts))
    assert ("violations", "0") in table(facts, driver.standing, violations)


def test_executions_that_publish_survive_kills_stops_restarts_and_clock_jumps(chaos: Chaos, store: str):
    """P2.3, P4.2, P5.3, P7.1, P7.2 (P9.C1, P9.C5, P9.C5b, P9.C7): all end as planned, publish once; V1 to V8 hold."""
    driver, facts = chaos(Options(store=store, **PIPELINES))
    violations = driver.judge(facts)
    assert violations == [], "\n".join(map(str, violations[:20]))
    accepted = {accepted.job for accepted in facts.account.accepted}
    assert accepted <= {execution.id for execution in facts.tables.executions}
    assert len(facts.tables.handoffs) >= len(accepted) / 2, "most executions succeed, and publish at least one item"
    check_executions(driver.url)
    assert {"DLQ", "SUCCEEDED"} == {execution.status for execution in facts.tables.executions}


@pytest.mark.soak
def test_a_build_that_publishes_after_the_success_is_caught(chaos: Chaos, store: str):
    """P7.1: what a killed worker had not published yet is lost."""
    plan = {**NO_FAULTS, **PIPELINES, "jobs": 120, "stops": 0, "naps": 0, "kills": 3, "settle": 90}
    driver, facts = chaos(Options(store=store, broken="published later", **plan))
    assert "published_items_are_admitted_once" in {violation.rule for violation in driver.judge(facts)}


@pytest.mark.soak
def test_long_bodies_that_run_twice_at_once_are_committed_once(chaos: Chaos, store: str):
    """J7.3 (P9.C5b): the plan that finds a missing fence finds nothing wrong with the product."""
    driver, facts = chaos(Options(store=store, **LONG_BODIES))
    violations = driver.judge(facts)
    assert violations == [], "\n".join(map(str, violations[:20]))
    pairs = [(first, later) for runs in facts.runs.values() for first, later in pairwise(runs)]
    assert any(first.ended is not None and later.started < first.ended for first, later in pairs)


def found(chaos: Chaos, **options: Any) -> set[str]:
    driver, facts = chaos(Options(until_violation=True, **options))
    return {violation.rule for violation in driver.judge(facts)}


@pytest.mark.soak
def test_a_build_without_the_fence_is_caught(chaos: Chaos, store: str):
    """J2.1, J7.3: a stopped worker's late commits take the place of those of the jobs' new holders."""
    rules = found(chaos, store=store, broken="no fence", **LONG_BODIES)
    assert "an_outcome_is_written_once_by_its_holder" in rules


@pytest.mark.soak
def test_a_build_whose_recovery_ignores_heartbeats_is_caught(chaos: Chaos, store: str):
    """J7.2: nodes are given up although they beat."""
    rules = found(chaos, store=store, broken="ignored heartbeats", jobs=300, settle=30, **{**NO_FAULTS, "naps": 3})
    assert "no_node_is_given_up_while_it_holds_its_lease" in rules


@pytest.mark.soak
def test_a_build_that_completes_in_two_transactions_is_caught(chaos: Chaos, store: str):
    """J4.3: a job is seen as ended and alive."""
    rules = found(chaos, store=store, broken="split commit", jobs=300, settle=30, **{**NO_FAULTS, "kills": 3})
    assert "no_job_is_two_things_at_once" in rules


def test_permits_are_never_exceeded_while_workers_are_killed_and_stopped(chaos: Chaos, store: str):
    """J6.2: three places, three workers that want more, and all places free at the end."""
    driver, facts = chaos(Options(store=store, **LIMITED, kills=2, stops=1, naps=1, jumps=0, restarts=0))
    violations = driver.judge(facts)
    assert violations == [], "\n".join(map(str, violations[:20]))
    assert sum(run.resource == "resource:stripe" for run in facts.account.runs) >= LIMITED["jobs"] * 0.9


@pytest.mark.soak
def test_a_build_that_counts_permits_is_caught(chaos: Chaos):
    """J6.2: on PostgreSQL, where a statement that waited for the lock still counts what it saw before."""
    rules = found(chaos, store="postgres", broken="counted permits", settle=30, **{**NO_FAULTS, **LIMITED, "naps": 4})
    assert "permits_stay_below_their_cap" in rules
