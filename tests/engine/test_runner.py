"""One attempt: where its body runs, what it knows of itself, and what its log lines carry."""

import logging
import threading

import psycopg
import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, settled
from windlass import ConfigurationError, InvalidOptionError, JobContext, JobStatus, Windlass
from windlass.testing import Drained, advance, drain, isolated


def test_log_lines_of_a_job_carry_its_id_node_and_attempt(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J4.1: in threads, coroutines and threads of coroutines, whatever logger was used."""
    caplog.set_level(logging.INFO)
    line, aline = app.job(jobs.log_line), app.job(jobs.alog_line)
    with app.worker() as worker:
        assert worker.node is not None
        node = worker.node.id
        sync, coroutine = line.enqueue("from a thread"), aline.enqueue("from the loop")
        sync.join(timeout=LONG)
        coroutine.join(timeout=LONG)
    made = {
        record.getMessage(): tuple(record.__dict__[name] for name in ("job_id", "node_id", "attempt"))
        for record in caplog.records
    }
    assert made["from a thread"] == (str(sync.id), node, 1)
    assert made["from the loop"] == made["from the loop in a thread"] == (str(coroutine.id), node, 1)


def test_a_format_that_names_the_fields_works_outside_of_jobs_too(app: Windlass):
    """J4.1: whatever formatter the user has; lines of no job carry a dash."""
    app.job(jobs.add)
    formatter = logging.Formatter("%(job_id)s %(node_id)s %(attempt)s %(message)s")
    with app.worker():
        record = logging.getLogger("shop").makeRecord("shop", logging.INFO, __file__, 1, "hello", (), None)
        assert formatter.format(record) == "- - - hello"


def test_a_retry_logs_under_its_own_attempt(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J4.1: the second attempt's lines say 2."""
    job = app.job(max_retries=1)(jobs.fail_at_first)
    with app.worker():
        handle = job.enqueue("first")
        assert handle.result(timeout=LONG) == 2
    failures = [r for r in caplog.records if r.levelno == logging.WARNING and "will be retried" in r.getMessage()]
    assert [record.__dict__["attempt"] for record in failures] == [1]


def test_no_transaction_is_open_while_a_body_runs(empty_postgres: str, gate: Gate):
    """J4.1: nothing of ours is open or locked in the database during user code."""
    apps = Apps(empty_postgres)
    app = apps()
    hold, ahold = app.job(jobs.hold), app.job(jobs.ahold)
    with app.worker():
        handles = [hold.enqueue(gate.name), ahold.enqueue(gate.name)]
        gate.wait_entered()
        assert handles[1].status() is not JobStatus.SUCCEEDED
        with psycopg.connect(empty_postgres, autocommit=True) as connection:
            connection.execute("SELECT pg_sleep(0.4)")  # the bodies have been running for as long
            rows = connection.execute(
                "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '0.3 seconds'"
            ).fetchall()
        gate.open()
        assert [handle.result(timeout=LONG) for handle in handles] == ["let go"] * 2
    apps.close()
    assert rows == []


def test_sync_bodies_never_run_on_the_loop_and_coroutines_do(app: Windlass):
    """J4.2: sync functions on threads, coroutine functions on the loop, unless the job says thread."""
    sync, coroutine = app.job(jobs.thread_name), app.job(jobs.athread_name)
    with app.worker():
        assert sync.enqueue().result(timeout=LONG) == "windlass-job"
        assert sync.using(executor="async").enqueue().result(timeout=LONG) == "windlass-job"
        assert coroutine.enqueue().result(timeout=LONG) == "windlass-worker"
        assert coroutine.using(executor="async").enqueue().result(timeout=LONG) == "windlass-worker"
        assert coroutine.using(executor="thread").enqueue().result(timeout=LONG) == "windlass-job"


async def test_on_the_callers_loop_coroutines_run_beside_the_caller(app: Windlass):
    """J4.2: `async with app.worker()` uses the running loop; sync bodies leave it alone."""
    sync, coroutine = app.job(jobs.thread_name), app.job(jobs.athread_name)
    async with app.worker():
        assert await (await coroutine.aenqueue()).aresult(timeout=LONG) == threading.current_thread().name
        assert await (await sync.aenqueue()).aresult(timeout=LONG) == "windlass-job"
        assert await (await coroutine.using(executor="thread").aenqueue()).aresult(timeout=LONG) == "windlass-job"


def test_a_thread_job_has_its_context_when_it_logs_or_reads_it(app: Windlass):
    """J4.2, J4.4: a coroutine on a thread has its context as well."""
    describe = app.job(executor="thread")(jobs.adescribe_myself)
    with app.worker():
        handle = describe.enqueue()
        assert handle.result(timeout=LONG)["job_id"] == str(handle.id)


def test_an_executor_that_does_not_exist_is_refused(app: Windlass):
    """J4.2: with what there is instead."""
    with pytest.raises(InvalidOptionError, match="'async', 'thread' or 'process', got 'gpu'"):
        app.job(executor="gpu")(jobs.add)  # type: ignore[call-overload]


def test_a_job_does_not_see_the_context_variables_of_the_one_before(app: Windlass):
    """J4.1: every attempt has a context of its own, although one job's end starts the next."""
    paint = app.job(jobs.paint)
    handles = app.enqueue_many([paint.bind(name) for name in ("red", "green", "blue")])
    with app.worker(concurrency=1):
        assert [handle.result(timeout=LONG) for handle in handles] == ["none"] * 3


def test_a_body_knows_what_it_was_enqueued_with(app: Windlass):
    """J4.4: `JobContext.current()`: id, attempt, fence, keys, params, target, queue, tags, node."""
    params = {"tenant": "acme", "n": [1]}
    options = {"queue": "billing", "tags": [" EU ", "vip"], "params": params, "correlation_id": "c7"}
    describe, adescribe = app.job(jobs.describe_myself), app.job(jobs.adescribe_myself)
    with app.worker() as worker:
        assert worker.node is not None
        for job in (describe, adescribe):
            handle = job.using(**options).enqueue()  # type: ignore[arg-type]
            assert handle.result(timeout=LONG) == {
                "job_id": str(handle.id),
                "attempt": 1,
                "fence": 1,
                "effect_key": f"windlass-{handle.id}",
                "params": params,
                "target": job.target,
                "queue": "billing",
                "tags": ["eu", "vip"],
                "correlation_id": "c7",
                "node": worker.node.id,
                "cancelled": False,
            }


def test_outside_of_jobs_there_is_no_context():
    """J4.4: the error says so."""
    with pytest.raises(ConfigurationError, match="outside of a job"):
        JobContext.current()


def test_the_effect_key_stays_and_the_fence_grows_over_attempts(app: Windlass):
    """J4.4: one key for outside effects, a growing number to refuse late writes by."""
    job = app.job(max_retries=1)(jobs.fail_at_first)
    with app.worker():
        assert job.enqueue("once").result(timeout=LONG) == 2
    (first, first_key, first_fence), (second, second_key, second_fence) = jobs.seen
    assert (first, second) == (1, 2)
    assert first_key == second_key
    assert first_fence < second_fence


def test_a_snooze_runs_the_job_later_without_spending_an_attempt(app: Windlass):
    """J4.4: snoozes are in the history, not in the attempts, and `max_retries` is not needed."""
    snooze = app.job(jobs.snooze_until_third_claim)
    with app.worker():
        handle = snooze.enqueue(0.01)
        assert handle.result(timeout=LONG) == [1, 1, 1]
    job = app.get(handle.id)
    assert (job.attempts, job.error) == (1, None)
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["snoozed", "snoozed", "succeeded"]
    assert len({key for _, key, _ in jobs.seen}) == 1
    assert len({fence for _, _, fence in jobs.seen}) == 3


def test_a_coroutine_snoozes_for_the_duration_it_gave(app: Windlass):
    """J4.4: the job is due after the delay; while it waits it is PENDING."""
    snooze = app.job(jobs.asnooze_once)
    with isolated(app, url=app.url):
        handle = snooze.enqueue(600)
        assert drain(app) == Drained(snoozed=1)
        advance(599)
        assert not drain(app)
        assert handle.status() is JobStatus.PENDING
        advance(1)
        assert drain(app) == Drained(succeeded=1)
        assert handle.result() == 1


def test_a_snooze_of_wrong_length_is_the_jobs_failure(app: Windlass):
    """J4.4: negative delays are refused where they are written."""
    snooze = app.job(jobs.asnooze_once)
    with app.worker():
        job = settled(app, snooze.enqueue(-1).id)
    assert (job.status, job.error_class) == (JobStatus.FAILED, "InvalidOptionError")
