"""Statements that the store refuses though it answers: named as such, reported by health; no other job is affected."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from tests.engine.recorder import Recorder
from tests.support.facts import is_sqlite, rows
from tests.support.waiting import until
from windlass import JobStatus, NodeSettings, Settings, StoreStatementError, Windlass
from windlass.domain.clock import VirtualClock, monotonic
from windlass.domain.transition import succeeded
from windlass.engine import completer as completers
from windlass.engine import set_aside
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Completer, Seams
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import FailpointError, armed
from windlass.runtime.service_errors import ServiceErrors
from windlass.stores.database import ErrorKind
from windlass.stores.open import open_database
from windlass.stores.postgres.session import kind_of
from windlass.testing.contract.workbench import Workbench

QUICK = Settings(node=NodeSettings(heartbeat_interval=0.5, drain_timeout=1))


def good(number: int) -> int:
    return number


def unlucky(number: int) -> int:
    return number


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_aside, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(set_aside, "LONGEST_PAUSE", 0.2)


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    made = Windlass(store_url, settings=QUICK, allow=[__name__])
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def bench(app: Windlass, store_url: str) -> Iterator[Workbench]:
    clock = VirtualClock()
    database = open_database(store_url, clock)
    yield Workbench(database, clock)
    database.close()


@contextmanager
def trigger(url: str, condition: str) -> Iterator[None]:
    """While this lasts the store refuses to write ended jobs for which the condition holds, with no fault of theirs."""
    on = f"TRIGGER broken BEFORE INSERT ON windlass_done FOR EACH ROW WHEN ({condition})"
    if is_sqlite(url):
        rows(url, f"CREATE {on} BEGIN SELECT RAISE(ABORT, 'the auditor says no'); END")
    else:
        rows(url, "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM no_such_thing(); END'")
        rows(url, f"CREATE {on} EXECUTE FUNCTION broken()")
    yield
    rows(url, "DROP TRIGGER broken" + ("" if is_sqlite(url) else " ON windlass_done"))


@contextmanager
def renamed(url: str, table: str, column: str) -> Iterator[None]:
    """While this lasts a column has another name."""
    rows(url, f"ALTER TABLE {table} RENAME COLUMN {column} TO moved_{column}")
    yield
    rows(url, f"ALTER TABLE {table} RENAME COLUMN moved_{column} TO {column}")


def ended(bench: Workbench, count: int, result: str = '"fine"') -> list[Attempt]:
    """Attempts whose bodies have returned."""
    bench.put(count)
    claimed = bench.claim_all(count)
    found = []
    for claim in claimed.claims:
        transition = succeeded(claim, bench.times(), result, holds_key=False)
        found.append(Attempt(claim, claimed.payloads[claim.job_id], monotonic(), transition=transition))
    return found


def trouble(app: Windlass) -> str:
    """What health says of errors of statements."""
    reason = app.health().reason
    return reason if "not an outage" in reason else ""


# ---------------------------------------------------------------------- the completer by itself


def test_an_outcome_whose_statement_is_refused_is_found_and_set_aside(bench: Workbench, store_url: str):
    """J7.9: the flush is split until it is alone; the others are written by the same tick."""
    attempts = ended(bench, 9)
    bad = attempts[4]

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        for attempt in attempts:
            completer.finish(attempt)
        with trigger(store_url, f"NEW.id = '{bad.claim.job_id}'"):
            await completer.tick()
            assert published == [attempt for attempt in attempts if attempt is not bad]
            assert completer.unwritten == {(bad.claim.job_id, bad.claim.fence)}
        completer.start()
        assert await completer.flushed()
        assert published[-1] is bad
        assert completer.unwritten == set()
        await completer.stop()
        await bench.database.aclose_loop()

    asyncio.run(flush())
    assert {bench.job(attempt.claim.job_id).status for attempt in attempts} == {JobStatus.SUCCEEDED}
    assert {len(bench.outcomes(attempt.claim.job_id)) for attempt in attempts} == {1}


def test_statements_are_few_while_every_outcome_is_refused(
    bench: Workbench, store_url: str, monkeypatch: pytest.MonkeyPatch
):
    """J7.9: what is wrong with all of them is not asked of each."""
    monkeypatch.setattr(completers, "MAX_SPLITS", 3)
    attempts = ended(bench, 100)
    tries: list[int] = []

    async def flush() -> None:
        completer = Completer(bench.database, Recorder([]), ErrorHandling())
        run = completer._database.arun

        async def counted(plan, batch, *args, **kwargs):
            tries.append(len(batch))
            return await run(plan, batch, *args, **kwargs)

        monkeypatch.setattr(completer._database, "arun", counted)
        for attempt in attempts:
            completer.finish(attempt)
        with trigger(store_url, "true"):
            await completer.tick()
        assert len(completer.unwritten) == 100
        assert tries == [100, 50, 25, 12, 13, 25, 50]
        completer.start()
        assert await completer.flushed()
        assert tries[7:] == [100]
        await completer.stop()
        await bench.database.aclose_loop()

    asyncio.run(flush())


def test_an_outcome_set_aside_after_a_commit_without_an_answer_is_looked_up(bench: Workbench, store_url: str):
    """J4.3: its first try was committed, the second was refused: the third does not count it as late."""
    (attempt,) = ended(bench, 1)

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        completer.finish(attempt)
        with armed("store.after_commit=raise@1"), pytest.raises(FailpointError):
            await completer.tick()
        with renamed(store_url, "windlass_attempt", "fence"):
            await completer.tick()
        assert published == []
        completer.start()
        assert await completer.flushed()
        assert (published, completer.stale) == ([attempt], 0)
        await completer.stop()
        await bench.database.aclose_loop()

    asyncio.run(flush())
    assert len(bench.outcomes(attempt.claim.job_id)) == 1


def test_a_commit_in_doubt_stays_in_doubt_while_others_are_written_again(bench: Workbench, store_url: str):
    """J4.3: what was committed without an answer is looked up, and not taken for an outcome that came too late."""
    refused, lost = ended(bench, 2)

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        completer.finish(refused)
        with trigger(store_url, f"NEW.id = '{refused.claim.job_id}'"):
            await completer.tick()
        completer.finish(lost)
        with armed("store.after_commit=raise@1"), pytest.raises(FailpointError):
            await completer.tick()
        completer.start()
        assert await completer.flushed()
        assert completer.stale == 0
        assert {attempt.claim.job_id for attempt in published} == {refused.claim.job_id, lost.claim.job_id}
        await completer.stop()
        await bench.database.aclose_loop()

    asyncio.run(flush())


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_damaged_job_that_cannot_be_paused_for_its_values_is_set_aside(bench: Workbench, store_url: str):
    """J7.9: a refusal of values is met again when the job is taken out of the way; the others are written."""
    (damaged,) = ended(bench, 1, "nul \0 and lone \udce9 surrogate")
    damaged.payload = None
    fine = ended(bench, 3)

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        for attempt in (damaged, *fine):
            completer.finish(attempt)
        await completer.tick()
        assert published == fine
        assert completer.unwritten == {(damaged.claim.job_id, damaged.claim.fence)}
        await bench.database.aclose_loop()

    rows(store_url, "ALTER TABLE windlass_hot ADD CONSTRAINT no_pause CHECK (status <> 'PAUSED')")
    asyncio.run(flush())


def test_a_damaged_job_that_cannot_be_paused_either_is_set_aside(bench: Workbench, store_url: str):
    """J7.9: the database refuses its values and then the statement that would take it out of the way; others go on."""
    (damaged,) = ended(bench, 1, "nul \0 and lone \udce9 surrogate")
    damaged.payload = None
    fine = ended(bench, 3)

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        for attempt in (damaged, *fine):
            completer.finish(attempt)
        with renamed(store_url, "windlass_hot", "paused_from"):
            await completer.tick()
            assert published == fine
        completer.start()
        assert await completer.flushed()
        await completer.stop()
        await bench.database.aclose_loop()

    asyncio.run(flush())
    assert bench.job(damaged.claim.job_id).status is JobStatus.PAUSED


def test_waiting_for_outcomes_counts_one_that_is_being_retried_as_unwritten(bench: Workbench, store_url: str):
    """J7.9: while it is tried again it is neither written nor set aside, and a drain must not take that for the end."""
    (attempt,) = ended(bench, 1)

    async def flush() -> None:
        before: list[Callable[[], Awaitable[None]]] = []
        seams = Seams(before=lambda _: before.pop()() if before else None)
        completer = Completer(bench.database, Recorder([]), ErrorHandling(), seams=seams)
        completer.finish(attempt)
        waits: list[asyncio.Task[bool]] = []

        async def begin_to_wait() -> None:
            waits.append(asyncio.create_task(completer.flushed()))
            await asyncio.sleep(0)  # it has looked by now

        with trigger(store_url, "true"):
            await completer.tick()
            await completer.tick()  # nothing more to write
            completer._set_aside.hurry()
            before.append(begin_to_wait)
            await completer.tick()
        completer._set_aside.hurry()
        assert not waits[0].done()
        await completer.tick()
        await completer.tick()
        assert await waits[0] is True
        await bench.database.aclose_loop()

    asyncio.run(flush())


# ---------------------------------------------------------------------- a worker


def test_health_reports_a_refused_outcome_until_it_is_written(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """J7.9: the log and `health` of any process say what the store refuses; other jobs go on; it is written later."""
    elsewhere = Windlass(store_url, settings=Settings())
    with app.worker(concurrency=4), ExitStack() as broken:
        broken.enter_context(trigger(store_url, "NEW.target LIKE '%unlucky'"))
        bad = app.bind(unlucky, 1).enqueue()
        until(lambda: "the store refuses to write the outcome" in caplog.text, "the log to say so")
        for number in range(5):
            assert app.bind(good, number).enqueue().result(timeout=90) == number
        reason = until(lambda: trouble(elsewhere), "health to say so")
        assert f"outcomes: the store refuses to write the outcome of job {bad.id}: StoreStatementError: " in reason
        assert ("the auditor says no" if is_sqlite(store_url) else "no_such_thing() does not exist") in reason
        found = elsewhere.health()
        assert (found.store_answers, found.schema_current, found.workers) == (True, True, 1)
        assert bad.status() is JobStatus.RUNNING
        broken.close()
        assert bad.result(timeout=90) == 1
        until(elsewhere.health, "health to be well again")
    elsewhere.close()
    assert "does not answer" not in caplog.text
    assert [job.attempts for job in app.find(target=f"{__name__}:unlucky")] == [1]


def test_a_drain_names_the_error_that_outcomes_are_refused_with(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """J7.9: a store that answers is not reported as unavailable, and a drain does not wait for refused writes."""
    worker = app.worker()
    with trigger(store_url, "true"):
        worker.__enter__()
        app.bind(good, 1).enqueue()
        until(lambda: "the store refuses to write the outcome" in caplog.text, "the log to say so")
        assert worker.drain() is False
        worker.__exit__(None, None, None)
    said = [record.getMessage() for record in caplog.records if "these jobs run again" in record.getMessage()]
    assert len(said) == 1
    assert "refuses a statement" in said[0]
    assert "does not answer" not in caplog.text


def test_health_reports_refused_claims(app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture):
    """J7.9: the same for every other service of a node."""
    with app.worker():
        with renamed(store_url, "windlass_queue", "paused"):
            reason = until(lambda: trouble(app), "health to say so")
            assert "poller: StoreStatementError: " in reason
            assert "paused" in reason
        until(app.health, "health to be well again")
        assert app.bind(good, 1).enqueue().result(timeout=90) == 1
    assert any("poller failed, trying again" in record.getMessage() for record in caplog.records)
    assert "does not answer" not in caplog.text


# ---------------------------------------------------------------------- callers


def test_a_refused_statement_is_an_error_of_ours(app: Windlass, store_url: str):
    """J7.9: it names the store and what it met, and says what to look at."""
    job = app.bind(good, 1).enqueue().id
    with renamed(store_url, "windlass_done", "reason"), pytest.raises(StoreStatementError) as caught:
        app.get(job)
    assert "refuses a statement" in str(caught.value)
    assert "reason" in str(caught.value)
    assert "they were changed" in str(caught.value)


def test_a_missing_right_is_named(pg_url: str):
    """J7.9: PostgreSQL says which, we say what to do; a schema of its user's own is missing from 15 on."""
    rows(pg_url, "CREATE ROLE windlass_stranger")
    try:
        app = Windlass(f"{pg_url}?options=-c%20role%3Dwindlass_stranger", settings=Settings())
        with pytest.raises(StoreStatementError, match=r"permission denied for schema public.*CREATE on the schema"):
            app.migrate()
        app.close()
    finally:
        rows(pg_url, "DROP ROLE windlass_stranger")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.SyntaxError, ErrorKind.STATEMENT),
        (psycopg.errors.InsufficientPrivilege, ErrorKind.STATEMENT),
        (psycopg.errors.UndefinedColumn, ErrorKind.STATEMENT),
        (psycopg.errors.RaiseException, ErrorKind.STATEMENT),
        (psycopg.errors.IndexCorrupted, ErrorKind.STATEMENT),
        (psycopg.errors.CheckViolation, ErrorKind.DATA),
        (psycopg.errors.ProgramLimitExceeded, ErrorKind.DATA),
        (psycopg.errors.StatementTooComplex, ErrorKind.DATA),
        (psycopg.errors.DiskFull, ErrorKind.GONE),
        (psycopg.errors.AdminShutdown, ErrorKind.GONE),
        (psycopg.errors.DeadlockDetected, ErrorKind.RESTART),
    ],
)
def test_errors_of_postgresql_are_classified(error: type[psycopg.Error], kind: ErrorKind):
    """J7.9: an outage is waited for, values fail their job, a refused statement is reported."""
    assert kind_of(error()) is kind


def test_errors_of_services_are_kept_until_they_work_again():
    """J7.9: one line for all of them, which every store takes, without those that pass by themselves."""
    kept = ServiceErrors()
    kept.failed("poller", OSError("gone"), "gone")
    assert kept.text() is None
    kept.failed("poller", ValueError("odd"), "odd\nindeed \0 \x1b[2J \udce9")
    kept.put("outcomes", "2 are refused")
    assert kept.text() == "outcomes: 2 are refused; poller: odd indeed \ufffd \ufffd[2J ?"
    kept.put("outcomes", None)
    kept.put("poller", None)
    assert kept.text() is None
