"""`windlass job signal`, and where commands show what a job waits for."""

import pytest

from tests.cli.desk import Desk
from windlass import JobContext, JobStatus

KEY = "order:7:approved"


def seen() -> list[object]:
    signal = JobContext.current().signal
    return [] if signal is None else [signal.outcome, signal.payload, signal.reason, signal.by]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["signaled", None, None]),
        (["--approve", "--payload", '{"by": "ops"}'], ["approved", {"by": "ops"}, None]),
        (["--reject", "out of stock", "-p", "[1]"], ["rejected", [1], "out of stock"]),
    ],
)
def test_signal_releases_the_waiting_jobs(desk: Desk, options: list[str], expected: list[object]):
    """J8.5: outcome, payload and reason reach the body; the sender is the user of the command."""
    job = desk.app.job(seen)
    handles = [job.bind().await_signal(KEY).enqueue() for _ in range(2)]
    assert desk.stdout("job", "signal", KEY, *options) == "signaled 2 jobs\n"
    desk.work_off(*handles)
    for handle in handles:
        *found, by = handle.result()
        assert found == expected
        assert str(by).startswith("cli:")


def test_signal_by_id_and_for_programs(desk: Desk):
    """J8.5: one job alone; the second signal finds no waiter, which is exit code 1."""
    job = desk.app.job(seen)
    first, second = (job.bind().await_signal(KEY).enqueue() for _ in range(2))
    assert desk.read("job", "signal", first.id) == {"key": str(first.id), "released": 1}
    assert desk.read("job", "signal", first.id, code=1)["released"] == 0
    assert desk.stdout("job", "signal", "nobody", code=1) == ""
    assert (first.status(), second.status()) == (JobStatus.PENDING, JobStatus.WAITING)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--approve", "--reject", "no"], "--approve or --reject"),
        (["--payload", "{by: ops}"], "expected JSON"),
        (["--payload", "NaN"], "JSON has no NaN"),
        (["--payload", "[" * 100_000], "expected JSON"),
    ],
)
def test_wrong_usage_sends_no_signal(desk: Desk, options: list[str], text: str):
    handle = desk.app.job(seen).bind().await_signal(KEY).enqueue()
    result = desk.run("job", "signal", KEY, *options)
    assert result.exit_code == 2
    assert text in result.output
    assert handle.status() is JobStatus.WAITING


def test_commands_show_what_a_job_waits_for(desk: Desk):
    """J8.5: key and deadline, by show, explain and graph; list finds it by its state."""
    job = desk.app.job(seen)
    handle = job.bind().then(job.bind().await_signal(KEY)).enqueue()
    waiting = str(handle.graph().nodes[1].id)
    timed = job.bind().await_signal(KEY, timeout=3600).enqueue()
    assert KEY in desk.stdout("job", "show", waiting)
    assert KEY in desk.read("job", "show", timed.id)["waits_for"]
    assert "deadline" in desk.stdout("job", "show", timed.id)
    assert KEY in desk.stdout("job", "explain", waiting)
    assert f"for {KEY}" in desk.drawn("job", "graph", waiting)
    assert {item["id"] for item in desk.read("job", "list", "--status", "waiting")["items"]} == {waiting, str(timed.id)}
    assert "it waits for a signal" in desk.stdout("job", "pause", waiting, code=1)
