"""`windlass batch`."""

import json
import re

import pytest

from windlass import BatchHandle
from windlass.cli.batch import forecast
from windlass.domain.batch import BatchProgress


@pytest.fixture
def batch(desk) -> BatchHandle:
    return desk.app.batch("invoices").each(desk.charge, [1, 2, 3, 4]).enqueue()


def run_all(desk, batch: BatchHandle) -> None:
    with desk.app.worker():
        batch.join(timeout=90)


def test_batches_are_listed_with_their_progress(desk, batch: BatchHandle):
    """J8.4: for pipes and for programs; other jobs are left out."""
    desk.charge.enqueue(9)
    (line,) = desk.stdout("batch", "list").splitlines()
    assert line.split("\t")[:8] == [str(batch.id), "PENDING", "invoices", "4", "0", "0", "0.0", ""]
    run_all(desk, batch)
    (item,) = desk.read("batch", "list")["items"]
    assert (item["id"], item["name"], item["status"]) == (str(batch.id), "invoices", "SUCCEEDED")
    assert item["progress"] == {
        "total": 4,
        "completed": 4,
        "failed": 0,
        "percent": 100.0,
        "success_rate": 1.0,
        "complete": True,
    }


def test_batch_is_shown_with_what_it_waits_for(desk, batch: BatchHandle):
    """J8.4."""
    output = desk.stdout("batch", "show", str(batch.id))
    assert "status: PENDING" in output
    assert "progress: 0.0 %, 0 completed, 0 failed of 4" in output
    assert "waits: it runs nothing itself: 0 of 4 children have ended" in output
    drawn = re.sub(r"\x1b\[[\d;]*m", "", desk.drawn("batch", "show", str(batch.id)))
    assert "░░░░" in drawn


def test_name_of_a_batch_does_not_act_on_the_terminal(desk):
    """J8.4: control characters are shown as signs, in every drawn form."""
    batch = desk.app.batch("evil \x1b[31mred\x07\nline").each(desk.charge, [1]).enqueue()
    run_all(desk, batch)
    for arguments in (("list",), ("show", str(batch.id)), ("show", "--watch", str(batch.id))):
        drawn = desk.drawn("batch", *arguments)
        assert "evil \N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER} line" in drawn, arguments
        assert "\x07" not in drawn
        assert "evil \x1b" not in drawn


def test_batch_is_watched_until_its_end(desk, batch: BatchHandle):
    """J8.4: a line for each change; the exit code says how it ended."""
    run_all(desk, batch)
    assert desk.stdout("batch", "show", "--watch", str(batch.id)) == (
        f"{batch.id}\tSUCCEEDED\t100.0 %, 4 completed, 0 failed of 4\n"
    )
    failing = desk.app.batch("declined").each(desk.decline, [1]).enqueue()
    run_all(desk, failing)
    ended = desk.run("batch", "show", "--watch", "--json", str(failing.id))
    assert (ended.exit_code, json.loads(ended.stdout)["progress"]["failed"]) == (1, 1)


def test_batch_is_paused_resumed_and_canceled_as_a_whole(desk, batch: BatchHandle):
    """J8.4, J10.7: a line for each, and a refusal says why."""
    key = str(batch.id)
    assert desk.stdout("batch", "pause", key) == f"{key}\tpaused\n"
    assert {job.status for job in desk.app.find()} == {"PAUSED"}
    assert desk.stdout("batch", "resume", key) == f"{key}\tresumed\n"
    assert desk.run("batch", "cancel", key).exit_code == 2
    assert desk.stdout("batch", "cancel", "--yes", key) == f"{key}\tcanceled\n"
    assert {job.status for job in desk.app.find()} == {"CANCELED"}
    refused = desk.run("batch", "resume", key)
    assert (refused.exit_code, refused.stdout) == (1, f"{key}\tnot resumed: it is not paused, but CANCELED\n")


def test_failed_children_are_retried(desk):
    """J8.4."""
    batch = desk.app.batch("declined").each(desk.decline, [1]).enqueue()
    run_all(desk, batch)
    assert desk.stdout("batch", "retry", str(batch.id)) == f"{batch.id}\tretried\n"
    assert batch.status() == "PENDING"


def test_plain_job_is_no_batch(desk):
    """J10.7: the error says what to write instead."""
    handle = desk.charge.enqueue(1)
    refused = desk.run("batch", "show", str(handle.id))
    assert refused.exit_code == 1
    assert "is no batch but" in refused.stderr


@pytest.mark.parametrize(
    ("total", "completed", "failed", "elapsed", "left"),
    [(10, 0, 0, 5.0, None), (10, 4, 1, 5.0, 5.0), (10, 10, 0, 5.0, None), (0, 0, 0, 5.0, None), (100, 1, 0, 0.0, None)],
)
def test_remaining_time_is_estimated_from_the_rate_so_far(
    total: int, completed: int, failed: int, elapsed: float, left: float | None
):
    """J8.4: at the rate so far."""
    assert forecast(BatchProgress(total, completed, failed, 0, 0, complete=False), elapsed) == left
