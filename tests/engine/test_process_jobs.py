"""Jobs in processes of their own, end to end: called, timed out, canceled, crashed, logged and drained."""

import logging
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.engine.apps import IMPATIENT, Apps, Shop, settled, until
from tests.support import process_bodies as bodies
from windlass import (
    JobContext,
    JobDeadLettered,
    JobFailed,
    JobFailedError,
    JobStatus,
    NodeSettings,
    Settings,
    Windlass,
)

SLOW = 120.0
"""Seconds for tests in which several processes start one after the other on a busy machine."""


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Windlass]:
    """Where the store does not matter: one is enough, since every process costs a start."""
    apps = Apps(sqlite_url)
    yield in_processes(apps())
    apps.close()


@pytest.fixture
def either(apps: Apps) -> Windlass:
    """Where it does matter."""
    return in_processes(apps())


def in_processes(app: Windlass) -> Windlass:
    for body in bodies.ALL:
        app.job(executor="process")(body)
    return app


def enqueue(app: Windlass, body: Any, *args: Any, **options: Any) -> Any:
    return app.bind(body, *args).using(executor="process", **options).enqueue()


def pid_in(file: Path) -> int:
    return int(until(lambda: file.exists() and file.read_text(), SLOW))


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_functions_coroutines_and_methods_of_all_kinds_run_in_a_process(sqlite_url: str):
    """J4.2, J1.1: found there by name; objects are made there, once per process."""
    apps = Apps(sqlite_url)
    app = apps(allow=["tests.support.process_bodies"])
    with app.worker():
        assert enqueue(app, bodies.add, 1).result(SLOW) == 2
        assert enqueue(app, bodies.apid).result(SLOW) == enqueue(app, bodies.pid).result(SLOW) != os.getpid()
        first, second = (enqueue(app, bodies.Counter.count, n).result(SLOW) for n in (1, 5))
        assert (first[0], second[0]) == (2, 6)
        assert first[1] == first[2] == second[1] != os.getpid()
        assert enqueue(app, bodies.Counter.cls_step).result(SLOW) == 1
        assert enqueue(app, bodies.Counter.twice, 4).result(SLOW) == 8
    apps.close()


def test_a_body_knows_the_same_of_itself_as_anywhere(either: Windlass):
    """J4.4: JobContext.current() works there; snoozing spends no attempt; progress arrives."""
    with either.worker() as worker:
        assert worker.node is not None
        options: dict[str, Any] = {"tags": ["a"], "params": {"x": 1}, "correlation_id": "order:7", "queue": "billing"}
        handle = enqueue(either, bodies.describe_myself, **options)
        seen = handle.result(SLOW)
        assert seen == {
            "job_id": str(handle.id),
            "attempt": 1,
            "fence": 1,
            "effect_key": seen["effect_key"],
            "params": {"x": 1},
            "target": "tests.support.process_bodies:describe_myself",
            "queue": "billing",
            "tags": ["a"],
            "correlation_id": "order:7",
            "node": worker.node.id,
            "cancelled": False,
        }
        snoozed = enqueue(either, bodies.snooze_once)
        assert snoozed.result(SLOW) > 1
        received = enqueue(either, bodies.report_progress, 20_000)
        assert received.result(SLOW) is None
    assert either.get(snoozed.id).attempts == 1
    progress = either.get(received.id).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.message) == (20_000, 20_000, "counting")


def test_errors_are_judged_by_class_mark_and_delay(either: Windlass):
    """J5.1, J5.2, J5.3: like those of any other body, secrets removed."""
    with either.worker():
        plain, own, marked, chained, after, leaving = (
            enqueue(either, bodies.fail, how, max_retries=1)
            for how in ("plain", "own", "marked", "do not retry", "retry after", "exit")
        )
        jobs = {name: settled(either, handle.id) for name, handle in vars_of(plain, own, marked, chained, leaving)}
        retried = settled(either, after.id)
    assert jobs["plain"].error == "ValueError: password=[REDACTED]"
    assert (jobs["own"].error_class, jobs["own"].error) == ("OrderError", "OrderError: order 7: no stock")
    assert (jobs["own"].attempts, jobs["own"].reason) == (2, "retry_exhausted")
    assert (jobs["marked"].attempts, jobs["marked"].reason) == (1, "non_retryable")
    assert (jobs["chained"].attempts, jobs["chained"].reason) == (1, "non_retryable")
    assert jobs["leaving"].error == "SystemExit: 4"
    assert (retried.attempts, retried.error) == (2, "RetryAfter: later")
    trace = either.history(own.id)[0].traceback or ""
    assert "process_bodies.py" in trace
    assert "job_process.py" not in trace


def test_errors_and_results_that_cannot_be_read_cost_no_process(app: Windlass):
    """J1.6, J5.1: an error keeps its class whatever its `__str__` raises; the job of such a result succeeds."""
    with app.worker():
        errors = [enqueue(app, bodies.fail, how) for how in ("unprintable", "exits when printed")]
        closed = enqueue(app, bodies.return_closed_row, max_retries=1)
        failed = [settled(app, handle.id) for handle in errors]
        assert closed.join(timeout=SLOW) is JobStatus.SUCCEEDED
    assert [(job.error_class, job.reason, job.crash_count) for job in failed] == [
        ("UnprintableError", "retry_exhausted", 0),
        ("ExitingError", "retry_exhausted", 0),
    ]
    assert failed[1].error == "ExitingError: <no message: its __str__ raised SystemExit>"
    assert (app.get(closed.id).attempts, len(app.history(closed.id))) == (1, 1)


def vars_of(*handles: Any) -> list[tuple[str, Any]]:
    return list(zip(("plain", "own", "marked", "chained", "leaving"), handles, strict=True))


def test_a_retry_policy_sees_the_real_class(sqlite_url: str):
    """J5.1: by isinstance, and with its attributes."""
    seen: list[BaseException] = []

    class Policy:
        def should_retry(self, attempt: int, error: BaseException) -> bool:
            seen.append(error)
            return False

        def get_delay(self, attempt: int) -> timedelta:
            return timedelta(0)

    apps = Apps(sqlite_url)
    app = in_processes(apps(retry_policy=Policy()))
    with app.worker():
        settled(app, enqueue(app, bodies.fail, "own", max_retries=3).id)
    apps.close()
    (error,) = seen
    assert type(error) is bodies.OrderError
    assert error.order == 7


def test_a_body_that_runs_over_its_time_is_killed(either: Windlass, tmp_path: Path):
    """J4.5: also one that lets no thread of Python run; the next job gets another process."""
    with either.worker():
        enqueue(either, bodies.pid).result(SLOW)
        handle = enqueue(either, bodies.hold_the_interpreter, str(tmp_path / "pid"), timeout=3)
        job = settled(either, handle.id)
        pid = pid_in(tmp_path / "pid")
        until(lambda: not is_alive(pid))
        assert enqueue(either, bodies.add, 1).result(SLOW) == 2
    assert (job.status, job.error_class) == (JobStatus.FAILED, "JobTimeoutError")
    assert (job.attempts, job.crash_count) == (1, 0)


def test_cancel_kills_the_process(either: Windlass, tmp_path: Path):
    """J2.2: within a second or so, wherever the body is."""
    with either.worker():
        handle = enqueue(either, bodies.hold_with_company, str(tmp_path / "pids"))
        pids = [int(pid) for pid in str(until((tmp_path / "pids").exists, SLOW) and _read(tmp_path / "pids")).split()]
        assert handle.cancel()
        until(lambda: not any(map(is_alive, pids)))
        assert enqueue(either, bodies.add, 1).result(SLOW) == 2
    assert either.get(handle.id).status is JobStatus.CANCELED


def _read(file: Path) -> str:
    return until(file.read_text)


def test_a_drain_that_times_out_kills_and_releases(apps: Apps, tmp_path: Path):
    """J7.6: without spending an attempt; no process is left."""
    app = in_processes(apps(settings=IMPATIENT))
    with app.worker():
        handle = enqueue(app, bodies.hold, str(tmp_path / "pid"))
        pid = pid_in(tmp_path / "pid")
    assert not is_alive(pid)
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.crash_count) == (JobStatus.PENDING, 0, 0)
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["released"]


def test_a_died_process_is_charged_to_the_crash_budget(either: Windlass, tmp_path: Path, caplog: Any):
    """J7.4, J2.5: a segmentation fault is lost, not failed: no attempt is spent, and the job runs again."""
    events: list[object] = []
    either.on(JobFailed)(events.append)
    with either.worker():
        handle = enqueue(either, bodies.crash_at_first, str(tmp_path / "marker"))
        assert handle.result(SLOW) == "survived"
    job = either.get(handle.id)
    assert (job.attempts, job.crash_count, job.error) == (1, 1, None)
    lost, ran = either.history(handle.id)
    assert (lost.outcome, lost.number, ran.outcome, ran.number) == ("lost", 1, "succeeded", 1)
    assert "was killed by SIGSEGV" in (lost.error or "")
    assert lost.started_at is not None
    assert events == []
    assert [r.levelno for r in caplog.records if "was lost and will run again" in r.getMessage()] == [logging.WARNING]


def test_a_job_that_kills_its_process_every_time_ends_as_worker_lost(apps: Apps):
    """J7.4: once the budget is spent it is FAILED, published as a dead letter, its key is free; others continue."""
    app = in_processes(apps(settings=Settings(node=NodeSettings(crash_budget=1))))
    received: list[Any] = []
    app.on(JobDeadLettered)(received.append)
    with app.worker():
        handle = enqueue(app, bodies.leave, 7, business_key="poison", max_retries=5)
        with pytest.raises(JobFailedError) as failed:
            handle.result(SLOW)
        assert enqueue(app, bodies.add, 1, business_key="poison").result(SLOW) == 2
    assert failed.value.reason == "worker_lost"
    assert "the job's worker was lost 2 times; the last time the job's process" in failed.value.error
    assert "ended with code 7" in failed.value.error
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.crash_count) == (JobStatus.FAILED, 0, 2)
    assert [(a.outcome, a.error_class) for a in app.history(handle.id)] == [("lost", "WorkerLostError")] * 2
    assert [(event.job_id, event.reason) for event in received] == [(handle.id, "worker_lost")]


def test_log_records_arrive_with_job_node_and_attempt(
    app: Windlass, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    """J4.1: name, level, extras and tracebacks kept; each line once; what the worker's level drops is dropped."""
    caplog.set_level(logging.INFO)
    with app.worker() as worker:
        assert worker.node is not None
        expected = (worker.node.id, 1)
        handle = enqueue(app, bodies.log_lines, "said")
        handle.result(SLOW)
        again = enqueue(app, bodies.set_up_logging_and_log)
        again.result(SLOW)
    lines = {record.getMessage(): record for record in caplog.records if record.process != os.getpid()}
    assert set(lines) == {
        "said by a library",
        "said by the context",
        "said by a thread",
        "said with a traceback",
        "said once",
    }
    for text, record in lines.items():
        fields = record.__dict__
        job = again if text == "said once" else handle
        assert (fields["job_id"], fields["node_id"], fields["attempt"]) == (str(job.id), *expected)
    library = lines["said by a library"]
    assert (library.name, library.levelname, library.__dict__["order"]) == ("shop.process", "INFO", 7)
    assert lines["said by the context"].name == "windlass.job"
    assert "ValueError: token=hunter2" in (lines["said with a traceback"].exc_text or "")
    assert "said once" not in capfd.readouterr().out, "handlers set up in a process are not used there"


def test_lines_of_the_jobs_own_logger_are_kept(either: Windlass, caplog: pytest.LogCaptureFixture):
    """J4.4: also those that the worker's level keeps from its handlers; each once."""
    caplog.set_level(logging.WARNING)
    with either.worker():
        handle = enqueue(either, bodies.log_lines, "said")
        handle.result(SLOW)
        lines = either.log_lines(handle.id)
    assert [(line.level, line.logger, line.text) for line in lines] == [("INFO", "windlass.job", "said by the context")]
    assert "said by the context" not in caplog.text


def test_signals_do_not_reach_a_body_but_reach_what_it_starts(app: Windlass):
    """J7.6: the worker decides when a job ends; a program that a body starts can still be stopped."""
    with app.worker():
        assert enqueue(app, bodies.ignore_signals).result(SLOW) == ["outlived both", "a program of its own: -15"]


def test_stored_arguments_that_no_longer_fit_need_no_process(sqlite_url: str, shop: Shop):
    """J1.1: refused before the body is entered."""
    apps = Apps(sqlite_url)
    module = shop.load("def charge(a: int, b: int) -> int: return a + b")
    app = apps(allow=[shop.name])
    handle = enqueue(app, module.charge, 1, 2)
    shop.load("def charge(a: int) -> int: return a")
    app.registry.clear()
    with app.worker():
        job = settled(app, handle.id)
    apps.close()
    assert (job.status, job.reason) == (JobStatus.FAILED, "poison_payload")


def test_results_are_limited_and_typed_as_anywhere(sqlite_url: str, shop: Shop, caplog: pytest.LogCaptureFixture):
    """J1.6: what is too large is replaced by a marker, with a warning, and the job succeeds."""
    source = """
from dataclasses import dataclass
from datetime import date

@dataclass
class Invoice:
    number: int
    day: date

def make(day: date) -> Invoice: return Invoice(7, day)
def large() -> str: return "x" * 70_000
"""
    apps = Apps(sqlite_url)
    module = shop.load(source)
    app = apps(allow=[shop.name])
    with app.worker():
        day = module.date(2030, 1, 2)
        assert enqueue(app, module.make, day).result(SLOW) == module.Invoice(7, day)
        large = enqueue(app, module.large)
        assert large.join(SLOW) is JobStatus.SUCCEEDED
    apps.close()
    assert [r for r in caplog.records if "more than the limit" in r.getMessage() and str(large.id) in r.getMessage()]


class Metres(float):
    """A number of another library."""


def raise_odd_numbers() -> None:
    raise ValueError("bad value", Metres(1.5))


def log_odd_values() -> str:
    context = JobContext.current()
    context.progress(1, None, "name \udcff")
    logging.getLogger("shop").warning("hi", extra={"far": Metres(2.0)})
    context.log.info("payload %s", "a" * 9_000)
    return "fine"


def test_invalid_values_of_a_job_process_fail_only_their_job(app: Windlass):
    """J4.2, J7.4: neither an error nor a log line with invalid values ends the process."""
    failing = app.job(executor="process")(raise_odd_numbers).enqueue()
    logging_job = app.job(executor="process")(log_odd_values).enqueue()
    with app.worker():
        job = settled(app, failing.id)
        assert (job.status, job.error_class, job.crash_count, job.attempts) == (JobStatus.FAILED, "ValueError", 0, 1)
        assert logging_job.result(timeout=SLOW) == "fine"
        assert app.get(logging_job.id).crash_count == 0
    (line,) = [line.text for line in app.log_lines(logging_job.id) if line.text.startswith("payload")]
    assert (len(line) > 1900, line.endswith("…")) == (True, True)
