"""Sinks of rejects: the log, a ring in memory, functions, and what follows when one fails."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from windlass import (
    ConfigurationError,
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
    kept = app.rejects.find().items
    assert {(one.id, one.item_fingerprint, one.payload) for one in got} == {
        (one.id, one.item_fingerprint, one.payload) for one in kept
    }
    assert len(kept) == count


@EVERY_WAY
def test_a_failing_sink_is_logged_and_the_execution_goes_on(
    app: Windlass, how: str, given: int, count: int, caplog: pytest.LogCaptureFixture
):
    """P5.4: CONTINUE, the default."""

    def broken(reject: Reject) -> None:
        raise ConnectionError("the queue is away")

    sieve = Sieve(app, how, sink=broken)
    with app.worker():
        sieve.pipeline.submit(given).result(RUN)
    assert caplog.text.count("the queue is away") == count
    assert "the store keeps the reject" in caplog.text
    assert len(app.rejects.find()) == count


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


@pytest.mark.parametrize("sink", [5, "disk", MemorySink, object()])
def test_what_is_no_sink_is_refused(app: Windlass, sink: Any):
    """P5.3: where the pipeline is declared."""
    with pytest.raises(InvalidOptionError, match="sink must be a function that takes a Reject"):
        app.pipeline("shop", sink=sink)
    with pytest.raises(InvalidOptionError, match=r"SinkFailure.CONTINUE or SinkFailure.FAIL_PIPELINE"):
        app.pipeline("shop", sink_failure="IGNORE")
