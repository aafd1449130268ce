"""Errors of executions: what they name, and when they come."""

from collections.abc import Iterable, Iterator

import pytest

from windlass import (
    JobCanceledError,
    JobFailedError,
    PayloadTooLargeError,
    UnknownResourceError,
    Windlass,
)

RUN = 60.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def test_errors_of_a_result_name_the_status_of_the_execution(app: Windlass):
    """P2.7: after a failure, a cancel, and a timeout."""
    shop = app.pipeline("shop", version="1", retry_limit=0)
    plain = app.pipeline("plain", version="1", retry_limit=0, dlq=False)

    for pipeline in (shop, plain):

        @pipeline.step
        def broken(number: int) -> int:
            raise ValueError("no")

    waiting = shop.submit(1)
    with pytest.raises(TimeoutError, match=r"execution .* \(status QUEUED\)"):
        waiting.result(0.01)
    assert waiting.cancel()
    with pytest.raises(JobCanceledError, match="ended as CANCELED"):
        waiting.result(RUN)
    with app.worker():
        for pipeline, status in ((shop, "DLQ"), (plain, "FAILED")):
            with pytest.raises(JobFailedError, match=rf"ended as {status} \(retry_exhausted\): ValueError: no"):
                pipeline.submit(1).result(RUN)


def test_a_value_over_the_limit_names_step_size_and_setting(app: Windlass):
    """P2.3: never a marker in the middle of an execution; an input is refused before anything is stored."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def large(text: str) -> str:
        return text * 300_000

    with pytest.raises(PayloadTooLargeError, match=r"pipelines\.max_value_bytes"):
        shop.submit("x" * 300_000)
    with app.worker():
        run = shop.submit("x")
        with pytest.raises(JobFailedError, match=r"step 'large' .* 300,0\d\d bytes .* pipelines.max_value_bytes"):
            run.result(RUN)
    assert len(app.executions.find().items) == 1


def test_a_resource_that_is_not_configured_is_refused_at_submit(app: Windlass):
    """P1.3: whichever step needs it."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def first(number: int) -> int:
        return number

    @shop.step(resource="bank")
    def second(number: int) -> int:
        return number + 1

    with pytest.raises(UnknownResourceError, match="bank"):
        shop.submit(1)
    app.configure_resource("bank", 1)
    with app.worker():
        assert shop.submit(1).result(RUN) == 2


def test_a_timeout_error_names_a_paused_execution(app: Windlass):
    """P2.7: its job waits to be released, which means something else for a flow."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def echo(number: int) -> int:
        return number

    run = shop.submit(1)
    assert run.pause()
    with app.worker(), pytest.raises(TimeoutError, match=r"\(status PAUSED\)") as late:
        run.result(1)
    assert "follows another job" not in str(late.value)


def test_an_execution_that_ends_in_one_value_has_no_items(app: Windlass):
    """P1.1, P2.1: the items before a last reduction are not its result; the transition key is that of the last step."""
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def numbers(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.reduce
    def total(given: Iterable[int]) -> int:
        return sum(given)

    with app.worker():
        run = shop.submit(4)
        assert run.result(RUN) == 6
    assert list(run.items()) == []
    assert app.executions.get(run.id).transition_key == f"{run.id}:1:1"
