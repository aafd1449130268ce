"""Foreign providers of dead letters, fed by the outbox."""

import json
import logging
from typing import Any

import pytest

from tests.support.facts import rows
from tests.support.waiting import until
from windlass import (
    ConfigurationError,
    DeadLetter,
    Delivery,
    DoNotRetry,
    JobFailedError,
    PipelinesSettings,
    Settings,
    SqsTarget,
    Windlass,
)
from windlass.integrations.dead_letter_providers import dead_letter_provider

RUN = 60.0


def app_with(url: str, provider: Any) -> Windlass:
    app = Windlass(url, settings=Settings(pipelines=PipelinesSettings(dlq_provider=provider)))
    app.migrate()
    shop = app.pipeline("shop", version="1")

    @shop.step
    def pay(number: int) -> int:
        raise DoNotRetry("the card is closed")

    return app


def charge(number: int) -> None:
    raise DoNotRetry("no such invoice")


def submit(app: Windlass, **options: Any) -> Any:
    assert app.parts.pipelines is not None
    (shop,) = app.parts.pipelines
    run = shop.submit(1, **options)
    with pytest.raises(JobFailedError):
        run.result(RUN)
    return run


def test_a_function_gets_the_dead_letters_that_the_store_has(store_url: str):
    """P6.2: of executions and of jobs, as they were when they died."""
    got: list[DeadLetter] = []
    app = app_with(store_url, got.append)
    job = app.job(name="shop:charge")(charge)
    with app.worker():
        submit(app, key="order-7", tenant="acme", correlation_id="c-1")
        job.enqueue(7).join(RUN)
        until(lambda: len(got) == 2, "the provider to get both")
    stored = {letter.job_id: letter for letter in app.dead_letters.find()}
    assert {letter.job_id: letter for letter in got} == stored
    assert {letter.resource_type for letter in got} == {"job", "pipeline"}
    until(lambda: rows(store_url, "SELECT count(*) FROM windlass_outbox") == [(0,)], "the outbox to be empty")
    app.close()


def test_an_outlet_gets_the_envelope(store_url: str):
    """P6.2: with a key of its own for each death of an execution."""
    got: list[Delivery] = []

    class Queue:
        def deliver(self, delivery: Delivery, /) -> None:
            got.append(delivery)

    app = app_with(store_url, Queue())
    with app.worker():
        run = submit(app, tenant="acme", correlation_id="c-1")
        until(lambda: len(got) == 1, "the first dead letter")
        app.executions.redrive(run.id, tenant="acme")
        until(lambda: len(got) == 2, "the second one")
    first, second = got
    assert (first.kind, first.name, first.tenant, first.correlation_id) == ("dead_letter", "shop", "acme", "c-1")
    assert first.idempotency_key != second.idempotency_key
    envelope = first.json()
    assert (envelope["executionId"], envelope["terminalReason"]) == (str(run.id), "non_retryable")
    assert envelope["transitionKey"] == f"{run.id}:0:1"
    app.close()


def test_a_provider_that_is_away_loses_nothing_and_blocks_nothing(store_url: str, caplog: pytest.LogCaptureFixture):
    """P6.2: also when the execution is re-driven before the provider has its dead letter."""
    away, got = True, []

    def unsteady(letter: DeadLetter) -> None:
        if away:
            raise ConnectionError("password=hunter2 was refused")
        got.append(letter)

    app = app_with(store_url, unsteady)
    with app.worker():
        run = submit(app)
        until(lambda: "delivery" in caplog.text and "to dead letters" in caplog.text, "the first failure")
        app.cancel(run.id)
        away = False
        until(lambda: got, "the provider to get it")
    assert got[0].execution_id == str(run.id)
    assert "hunter2" not in caplog.text
    app.close()


def test_the_log_has_the_envelope_and_the_first_action(store_url: str, caplog: pytest.LogCaptureFixture):
    """P6.2."""
    app = app_with(store_url, "log")
    with caplog.at_level(logging.ERROR, "windlass.dead_letters"), app.worker():
        run = submit(app)

        def logged() -> list[str]:
            return [one.getMessage() for one in caplog.records if one.name == "windlass.dead_letters"]

        until(logged, "the log line")
    (text,) = logged()
    assert f"execution {run.id} (shop) is a dead letter: non_retryable" in text
    assert json.loads(text.partition("envelope: ")[2])["errorCode"] == "DoNotRetry"
    app.close()


def test_the_store_alone_is_the_default_and_writes_nothing_else(store_url: str):
    """P6.2."""
    app = app_with(store_url, "store")
    with app.worker():
        submit(app)
    assert rows(store_url, "SELECT count(*) FROM windlass_outbox") == [(0,)]
    assert rows(store_url, "SELECT name FROM windlass_lease WHERE name LIKE 'relay %'") == []
    app.close()


def test_an_unknown_provider_is_refused():
    """P6.2."""
    with pytest.raises(ConfigurationError, match=r'pipelines.dlq_provider must be "store", "log" or "sqs".*\'kafka\''):
        PipelinesSettings(dlq_provider="kafka")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"pipelines\.dlq_provider must be"):
        PipelinesSettings(dlq_provider=SqsTarget)  # type: ignore[arg-type] # a class, and no object of it


async def to_crm(letter: DeadLetter) -> None:
    raise AssertionError("nothing awaits it")


def test_an_async_provider_is_refused_since_nothing_awaits_it():
    """P6.2: dead letters would count as taken that were not."""
    with pytest.raises(ConfigurationError, match=r"pipelines\.dlq_provider must not be async, got to_crm"):
        Windlass("sqlite://", settings=Settings(pipelines=PipelinesSettings(dlq_provider=to_crm)))


def test_a_provider_that_returns_a_coroutine_has_failed(store_url: str, caplog: pytest.LogCaptureFixture):
    """P6.2: its dead letter is tried again."""
    app = app_with(store_url, lambda letter: to_crm(letter))  # noqa: PLW0108 - it hides that it is async
    with app.worker():
        submit(app)
        until(lambda: "returned coroutine instead of doing its work" in caplog.text, "the failure")
    assert rows(store_url, "SELECT count(*) FROM windlass_outbox") == [(1,)]
    app.close()


def test_a_queue_without_its_url_and_a_url_without_a_queue_are_refused():
    """P6.2: where the application is made."""
    with pytest.raises(ConfigurationError, match=r"needs pipelines\.dlq_url"):
        Windlass("sqlite://", settings=Settings(pipelines=PipelinesSettings(dlq_provider="sqs")))
    with pytest.raises(ConfigurationError, match=r'pipelines\.dlq_provider is not "sqs"'):
        Windlass("sqlite://", settings=Settings(pipelines=PipelinesSettings(dlq_url="https://sqs.example.com/1/dead")))


def test_a_queue_is_chosen_by_its_settings():
    """P6.2."""
    chosen = dead_letter_provider(PipelinesSettings(dlq_provider="sqs", dlq_url="https://sqs.example.com/1/dead"))
    assert repr(chosen) == "SqsTarget('dead')"
