"""Loaders, workers and callers that die while they work on a batch."""

from collections import Counter

import pytest

from tests.crash.programs.loader import FOLLOWER, batch_of
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows, statuses
from tests.support.flow_invariants import check_flows
from tests.support.programs import SHORT_LEASES
from windlass import BatchHandle
from windlass.stores.plans.operations import WINDOW

ITEMS, CHUNK = 25, 10
MANY = WINDOW + 200
SWEEPS = {"WINDLASS_NODE__SWEEP_INTERVAL": "0.2"}
CHILDREN = "SELECT count(*) FROM windlass_job WHERE batch_id IS NOT NULL"
TOTAL = "SELECT total FROM windlass_group"
OPERATIONS = "SELECT count(*) FROM windlass_operation"
AGED = "UPDATE windlass_operation SET touched_at = 0"


def loader_died(stage: Stage, trap: str) -> None:
    loader = stage.programs.start(
        "loader", stage.url, ITEMS, CHUNK, environ={**SHORT_LEASES, "WINDLASS_FAILPOINTS": trap}
    )
    assert loader.exit_code() == KILLED, loader.printed
    assert one(stage.url, CHILDREN) == one(stage.url, TOTAL), "what is stored is what the batch counts"
    check_flows(stage.url)


def loaded(stage: Stage) -> BatchHandle:
    return batch_of(stage.app, ITEMS, CHUNK).enqueue()


def ran(stage: Stage) -> dict[int, int]:
    """How often each body ran."""
    return dict(Counter(map(int, stage.programs.ran())))


@pytest.mark.parametrize(
    ("trap", "stored"),
    [
        ("batch.chunk_before_commit=kill@1", 0),
        ("batch.chunk_before_commit=kill@3", 2 * CHUNK),
        ("batch.chunk_after_commit=kill@1", CHUNK),
        ("batch.chunk_after_commit=kill@3", ITEMS),
        ("batch.loaded=kill", ITEMS),
    ],
)
def test_killed_loader_continues_after_the_last_committed_item(stage: Stage, trap: str, stored: int):
    """J8.4: a crash loses and doubles no item; the batch does not end before all of them are stored."""
    loader_died(stage, trap)
    assert one(stage.url, CHILDREN) == stored
    assert statuses(stage.url).get("SUCCEEDED", 0) == 0
    handle = loaded(stage)
    assert not handle.duplicate
    assert one(stage.url, CHILDREN) == ITEMS
    stage.finished()
    assert ran(stage) == {**dict.fromkeys(range(ITEMS), 1), FOLLOWER: 1}
    assert (handle.status(), handle.progress().completed) == ("SUCCEEDED", ITEMS)


def test_worker_killed_at_the_end_of_a_batch_has_not_ended_it(stage: Stage):
    """J8.4, J4.3: the last outcome, its count and the end of the batch are one; what follows runs once."""
    handle = loaded(stage)
    worker = stage.start("batch.ended=kill")
    assert worker.exit_code() == KILLED, worker.printed
    check_flows(stage.url)
    progress = handle.progress()
    assert (handle.status(), progress.complete, progress.completed < ITEMS) == ("PENDING", False, True)
    stage.finished()
    assert (handle.status(), ran(stage)[FOLLOWER]) == ("SUCCEEDED", 1)
    assert FOLLOWER + 1 not in ran(stage)


def test_empty_batch_of_a_killed_loader_ends_once(stage: Stage):
    """J8.4: the loader ends it, in one transaction with its being loaded."""
    loader = stage.programs.start(
        "loader", stage.url, 0, CHUNK, environ={**SHORT_LEASES, "WINDLASS_FAILPOINTS": "batch.ended=kill"}
    )
    assert loader.exit_code() == KILLED, loader.printed
    handle = batch_of(stage.app, 0, CHUNK).enqueue()
    assert (handle.status(), handle.duplicate) == ("SUCCEEDED", False)
    stage.finished()
    assert ran(stage) == {FOLLOWER: 1}


def test_cancel_of_a_killed_caller_is_carried_on(stage: Stage):
    """J8.6: no child runs that was not canceled before."""
    handle = batch_of(stage.app, MANY, WINDOW).enqueue()
    caller = stage.programs.start(
        "steerer",
        stage.url,
        handle.id,
        environ={**SHORT_LEASES, "WINDLASS_FAILPOINTS": "operation.after_commit=kill@2"},
    )
    assert caller.exit_code() == KILLED, caller.printed
    check_flows(stage.url)
    assert (handle.status(), one(stage.url, OPERATIONS)) == ("CANCELED", 1)
    rows(stage.url, AGED)
    stage.finished(environ=SWEEPS)
    progress = handle.progress()
    assert (progress.complete, progress.completed + progress.failed) == (True, MANY)
    assert FOLLOWER not in ran(stage)
