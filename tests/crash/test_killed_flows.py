"""Workers that die while they release, cancel and count what depends on a job."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage, stage_on
from tests.support.facts import one, rows, statuses
from tests.support.flow_invariants import check_flows
from tests.support.programs import SHORT_LEASES, Program, Programs
from tests.support.waiting import until
from windlass import Call, group
from windlass.stores.plans.flows import MOST_ROWS

MANY = MOST_ROWS + 100
"""More followers than one transaction writes."""
VICTIM, OTHERS = "victim", "others"
"""Queues: workers that will be killed serve one of them, so that no attempt of a follower is cut off."""
SWEEPS = {"WINDLASS_NODE__SWEEP_INTERVAL": "0.2"}
UNRELEASED = "SELECT count(*) FROM windlass_hot WHERE due IS NULL"
NOTED = "SELECT count(*) FROM windlass_group_delta"
OPERATIONS = "SELECT count(*) FROM windlass_operation"
AGED = "UPDATE windlass_operation SET touched_at = 0"
"""Operations look idle: the checks do not wait ten seconds for the process that wrote them."""
COUNTED = "SELECT coalesce(sum(succeeded + failed), 0) FROM windlass_group"


def head(stage: Stage, body: Any = bodies.note, number: int = 0) -> Call[Any]:
    return stage.app.bind(body, number).using(queue=VICTIM)


def follower(stage: Stage, number: int) -> Call[Any]:
    return stage.app.bind(bodies.note, number).using(queue=OTHERS)


def fan(stage: Stage, body: Any) -> Any:
    """A job that many others follow."""
    return head(stage, body).then(group(*[follower(stage, number) for number in range(1, MANY + 1)]))


def died_at(stage: Stage, trap: str) -> Program:
    """Have a worker die at a point; counts of groups are exact whatever it left."""
    point, at, nth = trap.partition("@")
    worker = stage.start(f"{point}=kill{at}{nth}", [VICTIM])
    code = worker.exit_code()
    assert code == KILLED, f"it did not die at {trap} but ended with {code}:\n{worker.printed}"
    check_flows(stage.url)
    return worker


def ran(stage: Stage) -> dict[int, int]:
    """How often each body ran."""
    return dict(Counter(map(int, stage.programs.ran())))


def test_worker_killed_while_it_releases_followers_has_released_none(stage: Stage):
    """J8.1, J4.3, J7.4: outcome and release are one; the parent runs again, each follower once."""
    head(stage).then(follower(stage, 1)).then(follower(stage, 2)).enqueue()
    died_at(stage, "flow.released")
    assert one(stage.url, UNRELEASED) == 2
    stage.finished()
    assert ran(stage) == {0: 2, 1: 1, 2: 1}
    assert statuses(stage.url) == {"SUCCEEDED": 3}


def test_worker_killed_while_it_cancels_followers_has_canceled_none(stage: Stage):
    """J8.1, J4.3: the failure is not stored either; the next one cancels all of them, and none ever runs."""
    handle = head(stage, bodies.wordless).then(follower(stage, 1)).then(follower(stage, 2)).enqueue()
    died_at(stage, "flow.wave")
    assert (one(stage.url, UNRELEASED), statuses(stage.url)) == (2, {"RUNNING": 1, "PENDING": 2})
    stage.finished()
    assert stage.history(handle) == ["lost", "failed"]
    assert (ran(stage), statuses(stage.url)) == ({0: 2}, {"FAILED": 1, "CANCELED": 2})


@pytest.mark.parametrize("body", [bodies.note, bodies.wordless], ids=["succeeded", "failed"])
def test_worker_killed_while_it_counts_members_has_ended_none_of_them(stage: Stage, body: Any):
    """J8.3, J4.3: count and outcome are one; then the join runs once or never, what follows a failure never or once."""
    members = [head(stage, body, 1), head(stage, bodies.note, 2), head(stage, bodies.note, 3)]
    group(*members).then_on_failure(follower(stage, 5)).then(follower(stage, 4)).enqueue()
    died_at(stage, "flow.counted")
    assert (one(stage.url, COUNTED), one(stage.url, "SELECT count(*) FROM windlass_done")) == (0, 0)
    stage.finished()
    assert one(stage.url, COUNTED) == len(members)
    followed = {number: times for number, times in ran(stage).items() if number > len(members)}
    assert followed == ({4: 1} if body is bodies.note else {5: 1})


def test_worker_killed_while_it_counts_for_an_outer_group_has_counted_for_the_inner_one(stage: Stage):
    """J8.3: each count belongs to the transaction that ended its member."""
    inner = group(head(stage, number=1)).then(head(stage, number=2))
    group(inner).then(follower(stage, 3)).enqueue()
    died_at(stage, "flow.counted@2")
    assert (one(stage.url, COUNTED), one(stage.url, "SELECT count(*) FROM windlass_done")) == (1, 1)
    stage.finished()
    assert (one(stage.url, COUNTED), ran(stage)) == (2, {1: 1, 2: 2, 3: 1})


# ---------------------------------------------------------------------- counts that are noted: PostgreSQL only


@pytest.fixture
def pg_stage(pg_url: str, programs: Programs) -> Iterator[Stage]:
    """SQLite has one writer, and never notes a count."""
    with stage_on(pg_url, programs) as ready:
        yield ready


@contextmanager
def held_groups(url: str) -> Iterator[None]:
    """Another transaction that counts members of all groups, and has not committed yet."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1 FROM windlass_group FOR UPDATE")
        yield


def test_counts_of_a_worker_killed_before_settlement_are_settled_by_the_checks(pg_stage: Stage):
    """J8.3, J7.5: outcome and note are stored; another node counts them, and releases the join once."""
    group(head(pg_stage, number=1), head(pg_stage, number=2)).then(follower(pg_stage, 3)).enqueue()
    with held_groups(pg_stage.url):
        died_at(pg_stage, "group.uncounted")
    assert one(pg_stage.url, NOTED) >= 1
    assert one(pg_stage.url, COUNTED) == 0
    pg_stage.finished(environ=SWEEPS)
    assert ran(pg_stage)[3] == 1
    assert (one(pg_stage.url, COUNTED), statuses(pg_stage.url)) == (2, {"SUCCEEDED": 3})


def test_worker_killed_while_it_settles_has_settled_nothing(pg_stage: Stage):
    """J8.3, J7.5: the notes are still there."""
    group(head(pg_stage, number=1), head(pg_stage, number=2)).then(follower(pg_stage, 3)).enqueue()
    with held_groups(pg_stage.url):
        worker = pg_stage.start("settle.before_commit=kill", [VICTIM])
        until(lambda: one(pg_stage.url, NOTED) >= 1, "a count to be noted")
    assert worker.exit_code() == KILLED, worker.printed
    assert one(pg_stage.url, NOTED) >= 1
    pg_stage.finished(environ=SWEEPS)
    assert ran(pg_stage)[3] == 1
    assert one(pg_stage.url, COUNTED) == 2


# ---------------------------------------------------------------------- operations


@pytest.mark.parametrize("point", ["operation.after_commit", "settle.before_commit"])
def test_cascade_of_a_killed_worker_is_carried_on(stage: Stage, point: str):
    """J8.6: what it had committed stays, the rest is canceled by another node; none of them ever runs."""
    fan(stage, bodies.wordless).enqueue()
    died_at(stage, point)
    assert statuses(stage.url) == {"FAILED": 1, "CANCELED": MOST_ROWS, "PENDING": MANY - MOST_ROWS}
    assert one(stage.url, OPERATIONS) >= 1
    rows(stage.url, AGED)
    stage.finished(environ=SWEEPS)
    assert (ran(stage), statuses(stage.url)) == ({0: 1}, {"FAILED": 1, "CANCELED": MANY})


@pytest.mark.parametrize("point", ["operation.after_commit", "settle.before_commit"])
def test_release_of_a_killed_worker_is_carried_on(stage: Stage, point: str):
    """J8.6: each follower runs once, whichever node released it."""
    fan(stage, bodies.note).enqueue()
    died_at(stage, point)
    assert 0 < one(stage.url, UNRELEASED) <= MANY - MOST_ROWS
    rows(stage.url, AGED)
    stage.finished(environ=SWEEPS)
    assert ran(stage) == dict.fromkeys(range(MANY + 1), 1)


# ---------------------------------------------------------------------- callers


def caller_died(stage: Stage, program: str, job: Any, trap: str) -> None:
    caller = stage.programs.start(program, stage.url, job, environ={**SHORT_LEASES, "WINDLASS_FAILPOINTS": trap})
    assert caller.exit_code() == KILLED, caller.printed
    check_flows(stage.url)


def test_cascade_of_a_killed_caller_is_carried_on(stage: Stage):
    """J8.6, J2.2: a caller that cancels a job with many followers dies after its first commit."""
    handle = fan(stage, bodies.note).enqueue()
    caller_died(stage, "steerer", handle.id, "operation.after_commit=kill")
    assert statuses(stage.url) == {"CANCELED": 1 + MOST_ROWS, "PENDING": MANY - MOST_ROWS}
    rows(stage.url, AGED)
    stage.finished(environ=SWEEPS)
    assert (ran(stage), statuses(stage.url)) == ({}, {"CANCELED": 1 + MANY})


def test_caller_killed_before_its_retry_is_committed_has_revived_nothing(stage: Stage):
    """J2.4, J4.3: all is as it was; the retry can be repeated, then each follower runs once."""
    handle = head(stage, bodies.fail_while_shut).then(follower(stage, 1)).then(follower(stage, 2)).enqueue()
    stage.finished()
    caller_died(stage, "retrier", handle.id, "revive.before_commit=kill")
    assert statuses(stage.url) == {"FAILED": 1, "CANCELED": 2}
    stage.in_order()
    stage.programs.open_gate()
    stage.retry(handle)
    stage.finished()
    assert (ran(stage), statuses(stage.url)) == ({0: 1, 1: 1, 2: 1}, {"SUCCEEDED": 3})


def test_caller_killed_between_waves_of_a_revival_has_released_nothing(stage: Stage):
    """J8.6, J2.4: the checks cancel what was revived; the retry can be repeated, then each follower runs once."""
    handle = fan(stage, bodies.fail_while_shut).enqueue()
    stage.finished(environ=SWEEPS)
    assert statuses(stage.url) == {"FAILED": 1, "CANCELED": MANY}
    caller_died(stage, "retrier", handle.id, "revive.wave=kill@2")
    assert statuses(stage.url) == {"FAILED": 1, "PENDING": MOST_ROWS, "CANCELED": MANY - MOST_ROWS}
    stage.finished(environ=SWEEPS)
    assert (ran(stage), statuses(stage.url)) == ({}, {"FAILED": 1, "CANCELED": MANY})
    stage.programs.open_gate()
    stage.retry(handle)
    stage.finished(environ=SWEEPS)
    assert ran(stage) == dict.fromkeys(range(MANY + 1), 1)


def test_retry_finishes_the_cascade_of_a_killed_worker(stage: Stage):
    """J2.4, J8.6: what is left of it would cancel what the retry has revived; so each follower runs once."""
    handle = fan(stage, bodies.fail_while_shut).enqueue()
    died_at(stage, "operation.after_commit")
    assert one(stage.url, OPERATIONS) >= 1
    stage.programs.open_gate()
    stage.retry(handle)
    assert (one(stage.url, OPERATIONS), one(stage.url, UNRELEASED)) == (0, MANY)
    stage.finished()
    assert ran(stage) == dict.fromkeys(range(MANY + 1), 1)
