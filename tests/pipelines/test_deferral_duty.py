"""Executions behind an open circuit: deferred, and given up after a while."""

from collections.abc import Iterator

import pytest

from tests.support.facts import one
from windlass import ExecutionStatus, JobFailedError, PipelinesSettings, Settings, Windlass
from windlass.pipelines.deferral_duty import LONGEST_INTERVAL, interval_for

RUN = 60.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    settings = Settings(pipelines=PipelinesSettings(max_circuit_deferral=1))
    application = Windlass(store_url, settings=settings)
    application.migrate()
    yield application
    application.close()


@pytest.mark.parametrize("items", [False, True])
def test_execution_behind_an_open_circuit_fails_after_the_longest_deferral(app: Windlass, store_url: str, items: bool):
    """P4.3: the body is not entered and the attempt stays the same; items are deferred in the same way."""
    shop = app.pipeline("shop", version="1")
    called: list[int] = []

    if items:

        @shop.expand
        def numbers(number: int) -> Iterator[int]:
            yield from range(number)

    @shop.step(circuit="bank")
    def pay(number: int) -> int:
        called.append(number)
        return number

    app.configure_circuit("bank")
    app.circuit("bank").open()
    with app.worker():
        run = shop.submit(3)
        with pytest.raises(JobFailedError, match="circuit") as failed:
            run.result(RUN)
    assert failed.value.reason == "circuit_deferral_exhausted"
    assert (run.status(), called) == (ExecutionStatus.DLQ, [])
    assert one(store_url, "SELECT max(attempt) FROM windlass_execution") == 1


def test_the_duty_fails_neither_executions_behind_closed_circuits_nor_plain_jobs(app: Windlass):
    """P4.3: a plain job waits for its circuit as long as it takes."""
    job = app.job(circuit="bank")(pay_plain)
    app.configure_circuit("bank")
    app.circuit("bank").open()
    shop = app.pipeline("shop", version="1")

    @shop.step(circuit="post")
    def send(number: int) -> int:
        return number

    app.configure_circuit("post")
    with app.worker():
        handle = job.enqueue(1)
        assert shop.submit(7).result(RUN) == 7
        with pytest.raises(TimeoutError):
            handle.result(2.5)


def pay_plain(number: int) -> int:
    return number


def test_the_interval_follows_the_longest_deferral():
    assert interval_for(86_400) == LONGEST_INTERVAL
    assert interval_for(100) == 10
