"""Log lines kept with their jobs."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.engine import jobs, reporting_jobs
from tests.engine.apps import LONG, Apps, Gate, count, everything_stored, settled, until
from windlass import (
    Backoff,
    ConfigurationError,
    InvalidOptionError,
    JobNotFoundError,
    JobsSettings,
    LogLine,
    Settings,
    Windlass,
)
from windlass.engine import progress_writer as engine_reports
from windlass.runtime import logcontext


def run(app: Windlass, body: Any, *args: Any, **options: Any) -> list[LogLine]:
    """Run a job to its end, and give the lines kept of it."""
    job = app.job(**options)(body)
    with app.worker():
        handle = job.enqueue(*args)
        settled(app, handle.id)
        return app.log_lines(handle.id)


def texts(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


@contextmanager
def nobody_writes_lines(url: str) -> Iterator[None]:
    """Hold the store so that log lines cannot be written."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
    else:
        with psycopg.connect(url) as server:
            server.execute("LOCK TABLE windlass_job_log IN EXCLUSIVE MODE")
            yield


def test_lines_of_the_jobs_own_logger_are_kept_in_order(app: Windlass):
    """J4.4: there with the result, numbered from 1, with level, logger and time."""
    lines = run(app, reporting_jobs.log_lines, "first", "second", "third")
    assert [(line.attempt, line.number, line.level, line.logger, line.text) for line in lines] == [
        (1, 1, "INFO", "windlass.job", "first"),
        (1, 2, "INFO", "windlass.job", "second"),
        (1, 3, "INFO", "windlass.job", "third"),
    ]
    assert lines[0].at <= lines[1].at <= lines[2].at


def test_times_are_those_of_the_store(app: Windlass):
    """J4.4: so that they stand beside the times of attempts."""
    job = app.job(reporting_jobs.log_lines)
    with app.worker():
        handle = job.enqueue("now")
        handle.result(timeout=LONG)
    (line,), (attempt,) = app.log_lines(handle.id), app.history(handle.id)
    assert attempt.started_at is not None
    assert attempt.started_at <= line.at <= attempt.ended_at


def test_lines_are_kept_from_info_on_whatever_the_program_shows(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J4.4: keeping lines does not change what a program's own handlers get."""
    caplog.set_level(logging.WARNING)
    lines = run(app, reporting_jobs.log_levels)
    assert texts(lines) == ["at 20", "at 30", "at 40", "at 25", "at 100000"]
    assert [line.level for line in lines[:3]] == ["INFO", "WARNING", "ERROR"]
    shown = [record.levelno for record in caplog.records if record.name == "windlass.job"]
    assert shown == [30, 40, 100_000]


def test_lines_are_kept_although_a_configuration_disabled_the_logger(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """J4.4: what `logging.config.dictConfig` does by default to loggers it does not name."""
    monkeypatch.setattr(logging.getLogger("windlass.job"), "disabled", True)
    assert texts(run(app, reporting_jobs.log_lines, "kept")) == ["kept"]
    assert [record for record in caplog.records if record.name == "windlass.job"] == []


def test_lines_of_tasks_and_threads_of_a_body_are_kept(app: Windlass):
    """J4.1: coroutines, tasks, and threads with a copy of the context."""
    assert texts(run(app, reporting_jobs.alog_everywhere)) == ["on the loop", "in a thread", "in a task"]


def test_lines_of_several_threads_of_one_body_are_all_kept(app: Windlass):
    """J4.4: one count for all, and each thread's lines in its own order."""
    lines = run(app, reporting_jobs.log_by_threads, 8, 50)
    assert [line.number for line in lines] == list(range(1, 401))
    for name in range(8):
        assert [line.text for line in lines if line.text.startswith(f"{name} ")] == [f"{name} {n}" for n in range(50)]


def test_records_of_threads_that_a_body_starts_carry_its_fields_until_it_ends(
    apps: Apps, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """J4.1: job, node and attempt; such records are kept like those of the body."""
    outliving = reporting_jobs.Outliving()
    monkeypatch.setattr(reporting_jobs, "outliving", outliving)
    app = apps(settings=Settings(jobs=JobsSettings(keep_logs="all")))
    handle = app.job(reporting_jobs.start_threads).enqueue()
    with app.worker() as worker:
        assert worker.node is not None
        node = worker.node.id
        settled(app, handle.id)
        outliving.ended.set()
        assert outliving.thread is not None
        outliving.thread.join()
        assert texts(app.log_lines(handle.id)) == ["while the body runs", "in a pool"]
    inside, outside = (str(handle.id), node, 1), ("-", "-", "-")
    found = [record for record in caplog.records if record.name == "shop.threads"]
    assert [(record.getMessage(), (record.job_id, record.node_id, record.attempt)) for record in found] == [  # type: ignore[attr-defined]
        ("while the body runs", inside), ("in a pool", inside), ("after the body", outside),
    ]  # fmt: skip


def test_attempts_keep_their_lines_apart(app: Windlass):
    """J4.4: every attempt counts from 1."""
    lines = run(app, reporting_jobs.say_and_fail_at_first, 2, max_retries=1, backoff=Backoff.fixed(0))
    assert [(line.attempt, line.number, line.text) for line in lines] == [
        (1, 1, "attempt 1"),
        (1, 2, "in the middle"),
        (2, 1, "attempt 2"),
        (2, 2, "in the middle"),
    ]


def test_claims_of_one_attempt_are_distinguished_by_their_fence(app: Windlass):
    """J4.4: a snooze spends no attempt; its lines are kept all the same."""
    first, second = run(app, reporting_jobs.log_then_snooze)
    assert (first.attempt, first.number) == (second.attempt, second.number) == (1, 1)
    assert first.fence < second.fence


def test_secrets_do_not_reach_the_store(apps: Apps):
    """J5.5: neither by a message, nor by its arguments, nor by a traceback."""
    lines = run(apps(), reporting_jobs.log_secrets)
    assert lines[0].text == "connecting to postgresql://[REDACTED]@db.internal/prod"
    assert lines[1].level == "ERROR"
    assert lines[1].text.startswith("failed with token=[REDACTED]\nTraceback")
    assert lines[1].text.endswith("ValueError: password=[REDACTED]")
    assert reporting_jobs.SECRET not in everything_stored(apps.url)


def test_a_long_line_is_cut(app: Windlass):
    """J4.4: at 2,000 characters."""
    (line,) = run(app, reporting_jobs.log_long, 5000)
    assert line.text == "x" * 1999 + "…"


def test_lines_that_cannot_be_formatted_do_not_fail_the_body(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """J4.4: the body goes on, and what can be kept is kept."""
    monkeypatch.setattr(logging, "raiseExceptions", False)  # or pytest's own handler complains of them
    lines = run(app, reporting_jobs.log_oddly)
    assert texts(lines) == [
        "%d apples [not formatted: TypeError]",
        "NUL \ufffd, half a pair ?",
        "{'not': 'a text'}",
    ]


def test_an_attempt_has_a_limit_of_lines_and_one_that_reports_it(apps: Apps):
    """J4.4: `jobs.max_log_lines`."""
    app = apps(settings=Settings(jobs=JobsSettings(max_log_lines=10)))
    lines = run(app, reporting_jobs.log_many, 30)
    assert texts(lines[:10]) == [f"line {number}" for number in range(10)]
    assert texts(lines[10:]) == ["[no more lines of this attempt are kept: jobs.max_log_lines is 10]"]
    assert lines[10].level == "WARNING"


@pytest.mark.parametrize(
    ("keep", "kept"), [("all", ["by the shop", "by the job"]), ("job", ["by the job"]), ("none", [])]
)
def test_lines_of_other_loggers_are_kept_if_the_setting_requests_it(
    apps: Apps, caplog: pytest.LogCaptureFixture, keep: Any, kept: list[str]
):
    """J4.4: `jobs.keep_logs`; other loggers as far as their level lets through."""
    caplog.set_level(logging.INFO)
    app = apps(settings=Settings(jobs=JobsSettings(keep_logs=keep)))
    assert texts(run(app, reporting_jobs.log_elsewhere)) == kept


@pytest.mark.parametrize("word", ["job", "all", "none", "None"])
def test_the_setting_is_read_from_the_environment(word: str):
    """Operations: `none` is a choice here, and not the absence of one."""
    assert Settings.load(environ={"WINDLASS_JOBS__KEEP_LOGS": word}).jobs.keep_logs == word.lower()


def test_an_unknown_setting_is_refused():
    """Operations: saying what was expected."""
    with pytest.raises(ConfigurationError, match=r'keep_logs must be "job", "all" or "none"'):
        JobsSettings(keep_logs="some")  # type: ignore[arg-type]


def test_two_workers_in_one_process_keep_lines_each_by_its_own_settings(apps: Apps):
    """J4.4: what is kept is a matter of the job's node, not of the process."""
    silent = apps(settings=Settings(jobs=JobsSettings(keep_logs="none")))
    silent.job(jobs.add)
    with silent.worker(queues=["other"]):
        assert texts(run(apps(), reporting_jobs.log_lines, "kept")) == ["kept"]


def test_a_tail_follows_a_running_job(app: Windlass, gate: Gate):
    """Operations: `job tail`: ask again with the last line, or its position; no line is returned twice or left out."""
    job = app.job(reporting_jobs.log_in_steps)
    with app.worker():
        handle = job.enqueue(gate.name, 25)
        (first,) = until(lambda: app.log_lines(handle.id))
        assert first.text == "line 0"
        assert app.log_lines(handle.id, after=first) == []
        gate.open()
        seen = [first]
        while len(seen) < 25:
            after = seen[-1] if len(seen) % 2 else seen[-1].position
            seen += until(partial(app.log_lines, handle.id, after=after, limit=3))
        handle.result(timeout=LONG)
    assert texts(seen) == [f"line {number}" for number in range(25)]
    assert seen == app.log_lines(handle.id)


async def test_log_lines_are_read_with_the_async_twin(app: Windlass):
    """api.md: every verb has an async twin."""
    job = app.job(reporting_jobs.log_lines)
    async with app.worker():
        handle = await job.aenqueue("a", "b", "c")
        await handle.aresult(timeout=LONG)
        lines = await app.alog_lines(handle.id)
    assert texts(lines) == ["a", "b", "c"]
    assert await app.alog_lines(handle.id, after=lines[0], limit=1) == lines[1:2]


def test_invalid_requests_for_log_lines_are_refused(app: Windlass):
    """api.md: unknown ids raise; wrong places and limits say what was expected."""
    handle = app.job(jobs.add).enqueue(1, 2)
    assert app.log_lines(handle.id) == []
    with pytest.raises(JobNotFoundError):
        app.log_lines(uuid4())
    for wrong in ("", "3", "3.x", 7, -1):
        with pytest.raises(InvalidOptionError, match="after must be a LogLine or its position, got"):
            app.log_lines(handle.id, after=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="limit must be"):
        app.log_lines(handle.id, limit=0)


def bodies_ended(app: Windlass) -> bool:
    assert app._worker is not None
    assert app._worker.node is not None
    return app._worker.node.slots.running == 0


def test_a_store_that_hangs_delays_no_body_and_loses_nothing(apps: Apps, gate: Gate):
    """J4.4: lines wait in a bounded buffer."""
    app = apps()
    job = app.job(reporting_jobs.log_in_steps)
    with app.worker():
        handle = job.enqueue(gate.name, 500)
        gate.wait_entered()
        with nobody_writes_lines(apps.url):
            gate.open()
            until(lambda: bodies_ended(app))
        handle.result(timeout=LONG)
    assert texts(app.log_lines(handle.id)) == [f"line {number}" for number in range(500)]


def test_beyond_the_buffer_lines_are_dropped_and_that_is_logged(
    apps: Apps, gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """J4.4: one warning in the program's log, and one line at the place, with their number."""
    monkeypatch.setattr(engine_reports, "BUFFER", 20)
    app = apps()
    job = app.job(reporting_jobs.log_after_the_gate)
    with app.worker():
        handle = job.enqueue(gate.name, 51)
        gate.wait_entered()
        with nobody_writes_lines(apps.url):
            gate.open()
            until(lambda: bodies_ended(app))
            until(lambda: "dropping log lines" in caplog.text)
        handle.result(timeout=LONG)
    kept = [f"line {number}" for number in range(20)]
    assert texts(app.log_lines(handle.id)) == [*kept, "[31 lines were lost here: the store did not keep up]"]
    assert caplog.text.count("dropping log lines") == 1


def test_pending_lines_are_written_before_a_node_unregisters(apps: Apps, monkeypatch: pytest.MonkeyPatch, gate: Gate):
    """J3.5: also those of a body that outlived its attempt."""
    monkeypatch.setattr(engine_reports, "INTERVAL", 600.0)
    app = apps()
    job = app.job(timeout=1)(reporting_jobs.overlap)
    with app.worker():
        handle = job.enqueue(gate.name, "")
        settled(app, handle.id)
        gate.open()
        until(lambda: "late" in jobs.seen)
        assert count(apps.url, "job_log") == 0
    assert texts(app.log_lines(handle.id)) == ["late"]


def test_log_lines_and_progress_of_a_job_process_are_stored(app: Windlass):
    """J4.1, J4.4: a job in a process of its own speaks through its worker."""
    job = app.job(executor="process")(reporting_jobs.say_and_fail_at_first)
    with app.worker():
        handle = job.enqueue(1)
        handle.result(timeout=LONG)
    assert texts(app.log_lines(handle.id)) == ["attempt 1", "in the middle"]
    progress = app.get(handle.id).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (50.0, "attempt 1")


def test_a_record_made_elsewhere_is_kept_with_the_job_it_is_emitted_in(app: Windlass):
    """J4.1: how lines of a job's own process come home."""
    assert texts(run(app, emit_a_foreign_record)) == ["from another process\nTraceback: token=[REDACTED]"]


def emit_a_foreign_record() -> None:
    fields = {"name": "windlass.job", "levelno": logging.INFO, "levelname": "INFO", "msg": "from another process"}
    record = logging.makeLogRecord({**fields, "exc_text": f"Traceback: token={reporting_jobs.SECRET}"})
    logcontext.emit(record)
