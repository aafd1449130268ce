"""Progress of a job: reported by its body, visible to every process."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.engine import jobs, reporting_jobs
from tests.engine.apps import LONG, Apps, Gate, count, query, settled, until, waiting_again
from tests.engine.remote_worker import remote_worker
from tests.stores.recording import recorded
from tests.support.running_job import job_context
from windlass import Backoff, InvalidOptionError, Job, JobStatus, Progress, Windlass
from windlass.engine import progress_writer as engine_reports
from windlass.stores.plan import Step
from windlass.stores.plans import progress_reports


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The statements that save reports, as they happen."""
    steps: list[Step] = []
    monkeypatch.setattr(progress_reports, "save", recorded(steps, progress_reports.save))
    return steps


def reported(job: Job) -> tuple[float, float | None, str, float | None] | None:
    progress = job.progress
    return None if progress is None else (progress.done, progress.total, progress.message, progress.percent)


def test_progress_is_seen_from_another_process_while_the_job_runs(apps: Apps, tmp_path: Path):
    """J4.4: and the last report, once it has ended."""
    app = apps()
    with remote_worker(apps.url):
        handle = app.job(reporting_jobs.climb).enqueue(str(tmp_path / "sign"))
        until(lambda: app.get(handle.id).progress)
        job = app.get(handle.id)
        progress = job.progress
        assert (job.status, reported(job)) == (JobStatus.RUNNING, (5, 10, "half", 50.0))
        assert job.picked_at is not None
        assert progress is not None
        assert job.picked_at <= progress.at
        (tmp_path / "sign").touch()
        handle.result(timeout=LONG)
        job = app.get(handle.id)
    assert (job.status, reported(job)) == (JobStatus.SUCCEEDED, (10, 10, "all", 100.0))
    assert job.finished_at is not None
    assert job.progress is not None
    assert progress.at <= job.progress.at <= job.finished_at


@pytest.mark.parametrize("body", [reporting_jobs.say, reporting_jobs.asay], ids=["thread", "coroutine"])
async def test_the_last_progress_is_stored_before_the_result(app: Windlass, body: Any):
    """J4.4: written before the outcome, so it is there when a wait for the result returns."""
    job = app.job(body)
    with app.worker():
        for number in range(20):
            handle = await job.aenqueue(number, 20, f"no. {number}")
            await handle.aresult(timeout=LONG)
            assert reported(await app.aget(handle.id)) == (number, 20, f"no. {number}", 5.0 * number)


@pytest.mark.parametrize("body", [reporting_jobs.count_to, reporting_jobs.acount_to], ids=["thread", "coroutine"])
def test_a_tight_loop_writes_once_in_an_interval(
    app: Windlass, writes: list[Step], monkeypatch: pytest.MonkeyPatch, body: Any
):
    """J4.4: only the latest report counts. Here the interval is longer than the job, and its last report is written."""
    monkeypatch.setattr(engine_reports, "INTERVAL", 600.0)
    job = app.job(body)
    with app.worker():
        handle = job.enqueue(100_000)
        handle.result(timeout=90)
        assert reported(app.get(handle.id)) == (100_000, 100_000, "", 100.0)
    assert [step.name for step in writes] == ["save_progress"]


def test_jobs_without_progress_cost_no_statement(apps: Apps, writes: list[Step]):
    """J4.1: nothing between claim and completion."""
    app = apps()
    add = app.job(jobs.add)
    with app.worker():
        for handle in app.enqueue_many([add.bind(number, 1) for number in range(50)]):
            handle.result(timeout=LONG)
    assert writes == []
    assert (count(apps.url, "progress"), count(apps.url, "job_log")) == (0, 0)


def test_reports_of_many_jobs_share_a_statement(app: Windlass, writes: list[Step], gate: Gate):
    """J4.4: batched over the node."""
    hold, say = app.job(jobs.hold), app.job(reporting_jobs.say)
    with app.worker(concurrency=50):
        hold.enqueue(gate.name)
        handles = app.enqueue_many([say.bind(number, 40) for number in range(40)])
        for handle in handles:
            handle.result(timeout=LONG)
        gate.open()
    assert [app.get(handle.id).progress.done for handle in handles] == list(range(40))  # type: ignore[union-attr]
    assert len(writes) < 40


def test_every_attempt_starts_over(app: Windlass):
    """J4.4: the report of an earlier attempt is not shown for a later one."""
    job = app.job(max_retries=1, backoff=Backoff.fixed(1))(reporting_jobs.say_and_fail_at_first)
    with app.worker():
        handle = job.enqueue(2)
        assert reported(waiting_again(app, handle.id, 1)) is None
        handle.result(timeout=LONG)
    assert reported(app.get(handle.id)) == (50, 100, "attempt 2", 50.0)


def test_a_job_that_failed_shows_how_far_it_came(app: Windlass):
    """J4.4: progress survives the end, whatever it was."""
    job = app.job(reporting_jobs.say_and_fail_at_first)
    with app.worker():
        handle = job.enqueue(2)
        ended = settled(app, handle.id)
    assert (ended.status, reported(ended)) == (JobStatus.FAILED, (50, 100, "attempt 1", 50.0))


def test_an_attempt_that_is_over_cannot_overwrite_the_next_one(app: Windlass, gate: Gate):
    """J4.4: reports of a thread that outlives its timeout are ignored."""
    other = Gate()
    jobs.GATES[other.name] = other
    job = app.job(timeout=1, max_retries=1, backoff=Backoff.fixed(0))(reporting_jobs.overlap)
    with app.worker():
        handle = job.enqueue(gate.name, other.name)
        until(lambda: app.get(handle.id).attempts == 1)
        gate.open()
        until(lambda: "late" in jobs.seen)
        until(lambda: "late" in [line.text for line in app.log_lines(handle.id)])  # with the progress, or after it
        progress = app.get(handle.id).progress
        other.open()
        settled(app, handle.id)
    assert progress is None or progress.message == "second"
    last = app.get(handle.id).progress
    assert last is None or last.message == "second"


def test_progress_messages_are_redacted_and_cut(apps: Apps):
    """J5.5: no secret reaches the store by way of a message."""
    app = apps()
    job = app.job(reporting_jobs.say)
    with app.worker():
        handle = job.enqueue(1, 2, f"to {reporting_jobs.DSN} {'x' * 5000}")
        handle.result(timeout=LONG)
    progress = app.get(handle.id).progress
    assert progress is not None
    assert progress.message.startswith("to postgresql://[REDACTED]@db.internal/prod xxx")
    assert len(progress.message) == 500
    assert reporting_jobs.SECRET not in repr(query(apps.url, "SELECT * FROM windlass_progress"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((3,), (3, None, None)),
        ((0, 0), (0, 0, 100.0)),
        ((12, 10), (12, 10, 100.0)),
        ((0.5, 2), (0.5, 2, 25.0)),
        ((Fraction(1, 2), 1), (0.5, 1, 50.0)),
    ],
    ids=str,
)
def test_numbers_of_progress_are_stored_as_reported(app: Windlass, given: tuple[Any, ...], expected: tuple[Any, ...]):
    """api.md: `percent` needs a total, nothing to do is done, and more than all is all."""
    jobs.seen.append(given)
    job = app.job(say_what_was_seen)
    with app.worker():
        handle = job.enqueue()
        handle.result(timeout=LONG)
    progress = app.get(handle.id).progress
    assert isinstance(progress, Progress)
    assert (progress.done, progress.total, progress.percent) == expected


def say_what_was_seen() -> None:
    reporting_jobs.say(*jobs.seen[0])


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, 10**400, True, "3", None, Decimal(3), [1]], ids=repr)
def test_an_invalid_amount_is_refused(wrong: Any):
    """J4.4: with an error that says what was expected and what came."""
    context = job_context("0190a0a0-0000-7000-8000-000000000000", "node", 1)
    with pytest.raises(InvalidOptionError, match=r"done of a progress must be .*, got .*ctx\.progress\(3, 10\)"):
        context.progress(wrong)
    if wrong is not None:
        with pytest.raises(InvalidOptionError, match="total of a progress must be"):
            context.progress(1, wrong)


def test_a_message_must_be_a_text_and_a_wrong_call_fails_the_job(app: Windlass):
    """J4.4: like any error in a body; nothing was stored of it."""
    job = app.job(reporting_jobs.say)
    with app.worker():
        handle = job.enqueue(1, 2, 3)
        ended = settled(app, handle.id)
    assert (ended.status, ended.error_class, ended.progress) == (JobStatus.FAILED, "InvalidOptionError", None)
    assert ended.error is not None
    assert "message of a progress must be a text, got 3 (int)" in ended.error


def test_progress_outside_of_a_worker_is_ignored():
    """J4.4: a context without a node, as tests of a user's body may make one, takes progress and forgets it."""
    job_context("0190a0a0-0000-7000-8000-000000000000", "node", 1).progress(1, 2, "heard by nobody")
