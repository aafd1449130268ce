"""Sinks of rejects: the log, a ring in memory, functions, and what follows when one fails."""

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.facts import rows
from tests.support.waiting import until
from windlass import (
    ConfigurationError,
    Delivery,
    DoNotRetry,
    InvalidOptionError,
    JobContext,
    JobFailedError,
    LogSink,
    MemorySink,
    PipelinesSettings,
    Reject,
    RejectItem,
    Settings,
    SinkFailure,
    Windlass,
)
from windlass.settings import JobsSettings
from windlass.testing import drain, isolated

RUN = 60.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


class Sieve:
    """Rejects odd numbers: behind an expansion, in it, or as the only value."""

    def __init__(self, app: Windlass, how: str, **options: Any) -> None:
        self.calls = 0
        self.pipeline = app.pipeline("sieve", version="1", retry_wait=0.01, **options)
        if how == "value":

            @self.pipeline.step
            def only(number: int) -> int:
                self.calls += 1
                raise RejectItem("odd")

            return

        @self.pipeline.expand
        def lines(number: int, ctx: JobContext) -> Iterator[int]:
            self.calls += how == "stream"
            for one in range(number):
                if one % 2 and how == "stream":
                    ctx.reject(one, "odd")
                else:
                    yield one

        @self.pipeline.step
        def even(number: int) -> int:
            self.calls += how == "item"
            if number % 2:
                raise RejectItem("odd")
            return number


EVERY_WAY = pytest.mark.parametrize(("how", "given", "count"), [("item", 5, 2), ("stream", 5, 2), ("value", 1, 1)])


@EVERY_WAY
def test_a_ring_in_memory_gets_the_rejects_instead_of_the_store(app: Windlass, how: str, given: int, count: int):
    """P5.3: they are counted all the same."""
    ring = MemorySink()
    sieve = Sieve(app, how, sink=ring, include_payload=True)
    with app.worker():
        run = sieve.pipeline.submit(given)
        run.result(RUN)
    assert sorted(one.payload for one in ring.rejects) == [1, 3][:count]
    assert {one.error_class for one in ring.rejects} == {"RejectItem"}
    assert app.rejects.find().items == []
    assert app.executions.get(run.id).rejected == count


def test_the_ring_keeps_the_latest_512():
    """P5.3: the oldest go first."""
    ring = MemorySink()
    for number in range(600):
        ring.reject(number)  # type: ignore[arg-type]
    assert list(map(str, ring.rejects)) == [str(number) for number in range(88, 600)]


def test_the_log_has_the_envelope(app: Windlass, caplog: pytest.LogCaptureFixture):
    """P5.3: on its own logger."""
    sieve = Sieve(app, "item", sink="log")
    with caplog.at_level(logging.WARNING, "windlass.rejects"), app.worker():
        sieve.pipeline.submit(2).result(RUN)
    assert "step even of pipeline sieve rejected an item" in caplog.text
    assert '"itemFingerprint"' in caplog.text


@EVERY_WAY
def test_a_function_gets_what_the_store_keeps(app: Windlass, how: str, given: int, count: int):
    """P5.3: any callable."""
    got: list[Reject] = []
    sieve = Sieve(app, how, sink=got.append, include_payload=True)
    with app.worker():
        sieve.pipeline.submit(given).result(RUN)
        until(lambda: len(got) == count, "the sink to get the rejects")
    kept = app.rejects.find().items
    assert {(one.id, one.item_fingerprint, one.payload) for one in got} == {
        (one.id, one.item_fingerprint, one.payload) for one in kept
    }
    assert len(kept) == count


@EVERY_WAY
def test_a_failing_sink_is_called_again_and_the_execution_continues(
    app: Windlass, how: str, given: int, count: int, caplog: pytest.LogCaptureFixture
):
    """P5.4: CONTINUE, the default; the store keeps the rejects in any case."""
    got: list[Reject] = []
    away = True

    def unsteady(reject: Reject) -> None:
        if away:
            raise ConnectionError("the queue is away")
        got.append(reject)

    sieve = Sieve(app, how, sink=unsteady)
    with app.worker():
        sieve.pipeline.submit(given).result(RUN)
        until(lambda: "the queue is away" in caplog.text, "the first failure")
        assert len(app.rejects.find()) == count
        away = False
        until(lambda: len(got) == count, "the sink to get the rejects")
    assert {one.id for one in got} == {one.id for one in app.rejects.find()}
    failures = [record.getMessage() for record in caplog.records if record.name == "windlass.outbox"]
    assert failures
    assert all("to rejects of sieve" in text and "tried again in" in text for text in failures)


def test_an_outlet_gets_the_envelope_of_a_reject(app: Windlass):
    """P5.3: SQS and other outlets; the key is the id of the reject."""
    got: list[Delivery] = []

    class Queue:
        def deliver(self, delivery: Delivery, /) -> None:
            got.append(delivery)

    sieve = Sieve(app, "item", sink=Queue(), include_payload=True)
    with app.worker():
        run = sieve.pipeline.submit(2, tenant="acme", correlation_id="c-1")
        run.result(RUN)
        until(lambda: got, "the outlet to get the reject")
    (delivery,), (reject,) = got, app.rejects.find(tenant="acme").items
    assert (delivery.kind, delivery.name, delivery.tenant) == ("reject", "sieve", "acme")
    assert (delivery.idempotency_key, delivery.correlation_id) == (str(reject.id), "c-1")
    envelope = delivery.json()
    assert (envelope["executionId"], envelope["stepName"], envelope["payload"]) == (str(run.id), "even", 1)
    assert envelope["itemFingerprint"] == reject.item_fingerprint


def test_an_outlet_is_called_before_the_commit_on_request(app: Windlass):
    """P5.4: FAIL_PIPELINE."""

    class Queue:
        def deliver(self, delivery: Delivery, /) -> None:
            raise ConnectionError("the queue is away")

    sieve = Sieve(app, "value", sink=Queue(), sink_failure="FAIL_PIPELINE", retry_limit=0)
    with app.worker(), pytest.raises(JobFailedError, match="the queue is away"):
        sieve.pipeline.submit(1).result(RUN)
    assert app.rejects.find().items == []


def test_a_sink_that_refuses_a_reject_is_not_called_again(app: Windlass, store_url: str):
    """P5.3: the reason stays with its row until that is purged."""
    calls: list[Reject] = []

    def picky(reject: Reject) -> None:
        calls.append(reject)
        raise DoNotRetry("not mine")

    sieve = Sieve(app, "value", sink=picky)
    with app.worker():
        sieve.pipeline.submit(1).result(RUN)
        found = "SELECT status, error FROM windlass_outbox"
        until(lambda: rows(store_url, found) == [("REJECTED", "DoNotRetry: not mine")], "the row to be refused")
    assert len(calls) == 1


def test_a_sink_gets_rejects_of_a_version_that_is_not_there_any_more(app: Windlass, store_url: str):
    """P5.3: without the item, whose type only that version knew."""
    sieve = Sieve(app, "value", sink=unreachable, include_payload=True)
    with app.worker():
        sieve.pipeline.submit(1).result(RUN)
        until(lambda: rows(store_url, "SELECT 1 FROM windlass_outbox WHERE attempts > 0"), "the first failure")
    got: list[Reject] = []
    later = Windlass(store_url)
    newer = later.pipeline("sieve", version="2", sink=got.append)

    @newer.step
    def only(number: str) -> str:
        return number

    with later.worker():
        until(lambda: got, "the sink to get the reject")
    later.close()
    assert (got[0].pipeline, got[0].step_name, got[0].payload) == ("sieve", "only", None)


def unreachable(reject: Reject) -> None:
    raise ConnectionError("away")


def test_a_missing_sink_is_logged_and_its_rejects_are_kept(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P5.3: a worker that does not have it says how many wait."""
    sieve = Sieve(app, "item", sink=unreachable)
    with app.worker():
        sieve.pipeline.submit(5).result(RUN)
    other = Windlass(store_url)
    Sieve(other, "item")
    with other.worker():
        until(lambda: "2 deliveries wait for 'rejects of sieve'" in caplog.text, "the warning")
    other.close()
    assert rows(store_url, "SELECT count(*) FROM windlass_outbox") == [(2,)]


@EVERY_WAY
def test_a_failing_sink_fails_the_step_on_request(app: Windlass, how: str, given: int, count: int):
    """P5.4: FAIL_PIPELINE; nothing is recorded, and recovery does not help."""
    del count

    def broken(reject: Reject) -> None:
        raise ConnectionError("the queue is away")

    options = {"sink_failure": SinkFailure.FAIL_PIPELINE, "recover_on_failure": True, "retry_limit": 1}
    sieve = Sieve(app, how, sink=broken, **options)
    with app.worker(), pytest.raises(JobFailedError, match="the queue is away") as raised:
        sieve.pipeline.submit(given).result(RUN)
    assert (raised.value.error_class, raised.value.reason) == ("RejectSinkError", "retry_exhausted")
    assert app.rejects.find().items == []


@EVERY_WAY
def test_a_sink_that_exits_fails_the_step_on_request(app: Windlass, how: str, given: int, count: int):
    """P5.4: FAIL_PIPELINE; it ends neither a task of the worker nor its loop."""
    del count

    def exiting(reject: Reject) -> None:
        raise SystemExit(3)

    sieve = Sieve(app, how, sink=exiting, sink_failure="FAIL_PIPELINE", retry_limit=0)
    with app.worker(), pytest.raises(JobFailedError, match="SystemExit: 3") as raised:
        sieve.pipeline.submit(given).result(RUN)
    assert raised.value.error_class == "RejectSinkError"


class Exiting:
    """A sink that is not durable, and called after the commit."""

    durable = False

    def __init__(self) -> None:
        self.calls = 0

    def reject(self, reject: Reject) -> None:
        self.calls += 1
        raise SystemExit("password=hunter2")


@EVERY_WAY
def test_an_execution_continues_after_a_sink_that_exits(
    app: Windlass, how: str, given: int, count: int, caplog: pytest.LogCaptureFixture
):
    """P5.4: CONTINUE; the log has its error without a secret."""
    sink = Exiting()
    sieve = Sieve(app, how, sink=sink)
    with app.worker():
        sieve.pipeline.submit(given).result(RUN)
        until(lambda: sink.calls == count, "the sink to be called")
    assert caplog.text.count("SystemExit: password=[REDACTED]") == count
    assert "hunter2" not in caplog.text
    assert "the worker continues" not in caplog.text


@pytest.mark.parametrize("failure", list(SinkFailure))
def test_a_sink_that_hangs_does_not_hold_the_worker(store_url: str, failure: SinkFailure):
    """P5.4: its call has a time limit, and none of the threads that the node itself needs to end."""
    app = Windlass(store_url, settings=Settings(jobs=JobsSettings(timeout=0.5)))
    app.migrate()
    entered, release = threading.Event(), threading.Event()

    class Hanging:
        durable = False

        def reject(self, reject: Reject) -> None:
            entered.set()
            release.wait(600)

    sieve = Sieve(app, "item", sink=Hanging(), sink_failure=failure, retry_limit=0)
    try:
        with app.worker():
            run = sieve.pipeline.submit(2)
            if failure is SinkFailure.CONTINUE:
                assert run.result(RUN) == [0]
            else:
                with pytest.raises(JobFailedError, match=r"the sink of rejects ran longer than 0\.5 s"):
                    run.result(RUN)
            assert entered.is_set()
    finally:
        release.set()
    app.close()


@EVERY_WAY
def test_a_step_is_retried_until_its_sink_takes_the_reject(app: Windlass, how: str, given: int, count: int):
    """P5.4: nothing is emitted or recorded twice."""
    calls: list[Reject] = []

    def unsteady(reject: Reject) -> None:
        calls.append(reject)
        if len(calls) < 3:
            raise ConnectionError("later")

    sieve = Sieve(app, how, sink=unsteady, sink_failure="FAIL_PIPELINE", buffer=2)
    with app.worker():
        result = sieve.pipeline.submit(given).result(RUN)
    assert result == (None if how == "value" else [0, 2, 4])
    assert len(app.rejects.find()) == count


@pytest.mark.parametrize("sink", [LogSink(), MemorySink(), "log"])
def test_a_worker_refuses_to_start_where_items_may_be_lost(app: Windlass, sink: Any):
    """P5.3: recovery on, and a sink that is not durable."""
    Sieve(app, "item", sink=sink, recover_on_failure=True)
    with pytest.raises(ConfigurationError, match=r"sieve@1 may lose items: lines, even.*pipelines.production = false"):
        app.worker().__enter__()


def test_items_may_be_lost_outside_of_production_and_in_memory(store_url: str):
    """P5.3: by the setting, or on a store that is in memory itself."""
    app = Windlass(store_url, settings=Settings(pipelines=PipelinesSettings(production=False, reject_sink="log")))
    app.migrate()
    sieve = Sieve(app, "item", recover_on_failure=True)
    with app.worker():
        assert sieve.pipeline.submit(2).result(RUN) == [0]
    assert app.rejects.find().items == []
    app.close()
    tried = Windlass("sqlite://")
    other = Sieve(tried, "item", sink=MemorySink(), recover_on_failure=True)
    with isolated(tried):
        run = other.pipeline.submit(2)
        drain(tried)
        assert run.result(0) == [0]
    tried.close()


async def to_crm(given: Any) -> None:
    raise AssertionError("nothing awaits it")


class AsyncSink:
    durable = True

    async def reject(self, reject: Reject, /) -> None:
        await to_crm(reject)


@pytest.mark.parametrize("sink", [to_crm, AsyncSink()])
def test_an_async_sink_is_refused_since_nothing_awaits_it(app: Windlass, sink: Any):
    """P5.3: rejects would count as taken that were not."""
    with pytest.raises(InvalidOptionError, match=r"sink.* must not be async"):
        app.pipeline("shop", sink=sink)


@pytest.mark.parametrize("sink", [5, "disk", MemorySink, object()])
def test_an_invalid_sink_is_refused(app: Windlass, sink: Any):
    """P5.3: where the pipeline is declared."""
    with pytest.raises(InvalidOptionError, match="sink must be a function that takes a Reject"):
        app.pipeline("shop", sink=sink)
    with pytest.raises(InvalidOptionError, match=r"SinkFailure.CONTINUE or SinkFailure.FAIL_PIPELINE"):
        app.pipeline("shop", sink_failure="IGNORE")
