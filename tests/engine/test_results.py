"""Results and commits: what is visible together, how many jobs share a commit, and what comes back typed."""

import asyncio
import gc
import logging
import weakref
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, Shop, settled, until
from windlass import (
    DroppedResult,
    JobsSettings,
    JobStatus,
    PayloadTooLargeError,
    ResultDroppedError,
    Settings,
    Windlass,
)
from windlass.domain.job import Outcome


def test_a_visible_result_implies_its_history(app: Windlass, apps: Apps):
    """J4.3: success is one transaction: a reader that sees the result sees the row of history and no live row."""
    looking = apps()
    add = app.job(jobs.aadd)
    with app.worker(concurrency=10):
        for handle in app.enqueue_many([add.bind(n, n) for n in range(40)]):
            handle.result(timeout=LONG)
            job, history = looking.get(handle.id), looking.history(handle.id)
            assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 1)
            assert [attempt.outcome for attempt in history] == ["succeeded"]


def test_an_outcome_published_after_a_retry_is_not_taken_for_the_result(app: Windlass):
    """J2.5, J5.7: a worker publishes after its commit, by which time the job may wait again."""
    handle = app.job(jobs.aadd).enqueue(1, 2)
    future = app._results.expect(str(handle.id))
    app._results.deliver([Outcome(str(handle.id), JobStatus.FAILED, "tests.engine.jobs:aadd")])
    assert handle.cancel()
    assert future.result(LONG).status is JobStatus.CANCELED


def transactions_used(url: str) -> int:
    """How many transactions wrote the outcomes; every row carries the number of the one that made it."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(DISTINCT xmin::text) FROM windlass_done").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(("commit", "fewest", "most"), [("group", 1, 25), ("each", 50, 50)])
def test_completions_share_commits_unless_configured_otherwise(
    empty_postgres: str, gate: Gate, commit: Any, fewest: int, most: int
):
    """J4.3: group commit by default; jobs.commit = "each" writes every job on its own."""
    apps = Apps(empty_postgres)
    app = apps(settings=Settings(jobs=JobsSettings(commit=commit)))
    hold = app.job(jobs.ahold)
    with app.worker(concurrency=50):
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(50)])
        until(lambda: {handle.status() for handle in handles} == {JobStatus.RUNNING})
        gate.open()
        assert {handle.result(timeout=LONG) for handle in handles} == {"let go"}
    apps.close()
    assert fewest <= transactions_used(empty_postgres) <= most


def test_commit_each_works_on_every_store(apps: Apps):
    """J4.3: the setting for the narrowest window in which a job could run again."""
    app = apps(settings=Settings(jobs=JobsSettings(commit="each")))
    add = app.job(jobs.aadd)
    with app.worker():
        handles = app.enqueue_many([add.bind(n, n) for n in range(20)])
        assert [handle.result(timeout=LONG) for handle in handles] == [2 * n for n in range(20)]


def test_one_refused_outcome_does_not_affect_others(app: Windlass):
    """J4.3: each completion is guarded by its own fence; a late one is refused alone."""
    add, stuck = app.job(jobs.add), app.job(timeout=0.1)(jobs.loop_for_ever)
    with app.worker():
        late = stuck.enqueue()
        handles = [add.enqueue(n, n) for n in range(20)]
        assert [handle.result(timeout=LONG) for handle in handles] == [2 * n for n in range(20)]
        assert late.join(timeout=LONG) is JobStatus.FAILED


def test_results_are_returned_with_their_types(app: Windlass, apps: Apps):
    """J4.6, J1.1: dataclasses, enums, datetimes, UUIDs, Decimals, bytes; by handle and by `get`, here and elsewhere."""
    invoice = jobs.Invoice(
        number=UUID(int=7),
        total=Decimal("10.50"),
        state=jobs.State.PAID,
        at=datetime(2030, 1, 1, tzinfo=UTC),
        took=timedelta(seconds=1.5),
        seal=b"\x00\xff",
        lines=[("a", 1)],
    )
    echo = app.job(jobs.echo)
    with app.worker():
        handle = echo.enqueue(invoice)
        assert handle.result(timeout=LONG) == invoice
    elsewhere = apps()
    assert elsewhere.job(jobs.echo).handle(handle.id).result(timeout=LONG) == invoice
    assert elsewhere.handle(handle.id).result(timeout=LONG) == invoice
    job = elsewhere.get(handle.id)
    assert (job.result, job.args) == (invoice, (invoice,))


def test_a_result_without_annotation_is_returned_as_it_was(app: Windlass):
    """J4.6: built-in types keep their type without annotations."""
    echo = app.job(jobs.echo_anything)
    values = [
        None,
        7,
        "x",
        [1, {"a": 2.5}],
        datetime(2030, 1, 1, tzinfo=UTC),
        Decimal("1.1"),
        UUID(int=1),
        b"x",
        {1, 2},
    ]
    with app.worker():
        assert [echo.enqueue(value).result(timeout=LONG) for value in values] == values


MADE = """
from windlass import Windlass
app = Windlass({url!r})
class Till:
    @app.job
    def number(self) -> int:
        return id(self)
"""


def test_closing_forgets_what_was_resolved_and_made(apps: Apps, shop: Shop):
    """J4.6: objects, targets and signatures are kept for the life of the application, and let go by `close`."""
    apps()
    module = shop.load(MADE.format(url=apps.url))
    with module.app.worker():
        first, second = (module.Till.number.enqueue().result(timeout=LONG) for _ in range(2))
    assert first == second, "one object per process"
    made = weakref.ref(module.app.registry.instances.resolve(module.Till))
    assert made() is not None
    assert id(made()) == first
    module.app.close()
    gc.collect()
    assert made() is None


def test_a_payload_at_the_limit_is_taken_and_one_byte_more_is_not(apps: Apps):
    """J1.6: jobs.max_payload_bytes, 100 KiB by default, of the stored JSON."""
    app = apps()
    length = app.job(jobs.length)
    most = 102_400 - len('[[""],{}]')
    with app.worker():
        assert length.enqueue("x" * most).result(timeout=LONG) == most
    with pytest.raises(PayloadTooLargeError, match=r"102,401 bytes.*limit of 102,400.*max_payload_bytes"):
        length.enqueue("x" * (most + 1))
    small = apps(settings=Settings(jobs=JobsSettings(max_payload_bytes=20)))
    with pytest.raises(PayloadTooLargeError, match="limit of 20"):
        small.job(jobs.note).enqueue("x" * 20)
    with pytest.raises(PayloadTooLargeError, match=r"params take .* limit of 20"):
        small.job(jobs.note).using(params={"why": "x" * 20}).enqueue("")


@pytest.mark.parametrize("what", ["too large", "not JSON", "not what was annotated"])
def test_a_result_that_cannot_be_kept_is_replaced_by_a_marker(
    app: Windlass, caplog: pytest.LogCaptureFixture, what: str
):
    """J1.6, J10.5: the job has SUCCEEDED, with a warning; `result()` raises rather than give the marker for a value."""
    odd = app.job(jobs.odd_result)
    with app.worker():
        handle = odd.enqueue(what)
        job = settled(app, handle.id)
    assert (job.status, job.attempts, job.error) == (JobStatus.SUCCEEDED, 1, None)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [str(handle.id) in record.getMessage() for record in warnings] == [True]
    if what == "not what was annotated":
        assert handle.result() == job.result == [1, 2]
        return
    assert isinstance(job.result, DroppedResult)
    assert ("65,538 bytes" in job.result.reason) == (what == "too large")
    for wait in (handle.result, lambda: asyncio.run(handle.aresult())):
        with pytest.raises(ResultDroppedError, match="succeeded, but its result was not kept: the result") as dropped:
            wait()
        assert (dropped.value.job_id, dropped.value.why) == (handle.id, job.result.reason)


def test_the_limit_of_results_is_a_setting(apps: Apps):
    """J1.6: jobs.max_result_bytes, 64 KiB by default."""
    app = apps(settings=Settings(jobs=JobsSettings(max_result_bytes=10)))
    note = app.job(jobs.note)
    with app.worker():
        assert note.enqueue("x" * 8).result(timeout=LONG) == "x" * 8
        with pytest.raises(ResultDroppedError, match="more than the limit of 10"):
            note.enqueue("x" * 9).result(timeout=LONG)
