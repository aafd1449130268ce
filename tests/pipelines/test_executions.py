"""Executions of pipelines on a worker, on every store."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

import pytest

from tests.support.waiting import until
from windlass import (
    ExecutionStatus,
    JobContext,
    JobFailedError,
    KeyConflictError,
    RejectItem,
    Windlass,
)
from windlass.testing import advance, drain, isolated

RUN = 60.0


@dataclass
class Line:
    number: int


@dataclass
class Priced:
    number: int
    price: float


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def test_steps_run_one_after_another_with_the_value_of_the_one_before(app: Windlass):
    """P1.1, P2.7: a pipeline of plain functions; the result is what the last one returns."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def parse(raw: dict) -> int:
        return int(raw["n"])

    @shop.step
    async def double(number: int) -> int:
        return number * 2

    @shop.tap
    def look(number: int) -> str:
        return "ignored"

    with app.worker():
        run = shop.submit({"n": "21"}, key="a", tenant="acme")
        assert run.result(RUN) == 42
        assert run.status() is ExecutionStatus.SUCCEEDED
    assert parse({"n": 1}) == 1


@pytest.mark.parametrize("count", [0, 1, 5, 300, 1500])
def test_items_of_an_expansion_reach_the_reduction_in_order(app: Windlass, count: int):
    """P1.1, P1.3: chunks, parts and pages do not show."""
    shop = app.pipeline("shop", version="1", buffer=50)

    @shop.expand
    def lines(number: int) -> Iterator[Line]:
        return map(Line, range(number))

    @shop.step
    async def price(line: Line) -> Priced:
        return Priced(line.number, line.number / 2)

    @shop.reduce
    def total(priced: Iterable[Priced]) -> list[int]:
        return [one.number for one in priced]

    with app.worker():
        assert shop.submit(count).result(RUN) == list(range(count))


def test_async_generators_transformations_and_nested_expansions_keep_the_order(app: Windlass):
    """P1.1: every kind of step, also behind each other."""
    shop = app.pipeline("shop", version="1", buffer=7)

    @shop.expand
    async def tens(number: int) -> AsyncIterator[int]:
        for ten in range(number):
            yield ten * 10

    @shop.expand
    def ones(ten: int) -> Iterator[int]:
        yield from range(ten, ten + 10)

    @shop.transform
    async def even(numbers: AsyncIterable[int]) -> AsyncIterator[int]:
        async for number in numbers:
            if number % 2 == 0:
                yield number

    @shop.step
    def text(number: int) -> str:
        return str(number)

    with app.worker():
        run = shop.submit(5)
        assert run.result(RUN) == [str(number) for number in range(0, 50, 2)]
        assert list(run.items()) == [str(number) for number in range(0, 50, 2)]


def test_a_step_that_does_not_take_the_type_of_an_item_passes_it_on(app: Windlass):
    """P1.2: branch by type."""
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def mixed(number: int) -> Iterator[Line | Priced]:
        yield Line(number)
        yield Priced(number, 1.0)

    @shop.step
    def price(line: Line) -> Priced:
        return Priced(line.number, 2.0)

    @shop.reduce
    def total(priced: Iterable[Priced]) -> list[float]:
        return [one.price for one in priced]

    with app.worker():
        assert shop.submit(1).result(RUN) == [2.0, 1.0]


def test_a_failing_step_is_retried_with_a_transition_key_for_each_attempt(app: Windlass):
    """P2.5, P4.2: the transition key differs for each attempt, the effect key does not."""
    shop = app.pipeline("shop", version="1", retry_wait=0.01)
    seen: list[tuple[str, str]] = []

    @shop.step
    def unsteady(number: int, ctx: JobContext) -> int:
        seen.append((ctx.transition_key, ctx.effect_key))
        if len(seen) < 3:
            raise ConnectionError("later")
        return number

    with app.worker():
        run = shop.submit(7)
        assert run.result(RUN) == 7
    assert seen == [(f"{run.id}:0:{attempt}", f"{run.id}:0") for attempt in (1, 2, 3)]


def test_an_item_is_retried_alone_and_keeps_its_effect_key(app: Windlass):
    """P2.5, P4.2: its path is part of both keys."""
    shop = app.pipeline("shop", version="1", retry_wait=0.01)
    seen: list[tuple[str, str]] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def unsteady(number: int, ctx: JobContext) -> int:
        if number == 3:
            seen.append((ctx.transition_key, ctx.effect_key))
            if len(seen) < 3:
                raise ConnectionError("later")
        return number

    with app.worker():
        run = shop.submit(5)
        assert run.result(RUN) == [0, 1, 2, 3, 4]
    assert seen == [(f"{run.id}:1:{attempt}:3", f"{run.id}:1:3") for attempt in (1, 2, 3)]


def test_an_execution_out_of_retries_ends_in_the_dead_letter_queue(app: Windlass):
    """P6.1, P6.2: with the whole envelope, in the transaction that ends it."""
    shop = app.pipeline("shop", version="1", retry_limit=1, retry_wait=0.01)

    @shop.step
    def broken(number: int) -> int:
        raise ConnectionError("never")

    with app.worker():
        run = shop.submit(7, key="seven", tenant="acme")
        with pytest.raises(JobFailedError, match="never"):
            run.result(RUN)
        assert run.status() is ExecutionStatus.DLQ
    (letter,) = app.dead_letters.find(kind="execution")
    assert (letter.tenant_id, letter.execution_key, letter.resource_type) == ("acme", "seven", "pipeline")
    assert (letter.resource_name, letter.terminal_reason) == ("shop", "retry_exhausted")
    assert (letter.transition_key, letter.retries_observed) == (f"{run.id}:0:2", 1)


def test_one_failed_item_ends_its_execution(app: Windlass):
    """P6.1: without recovery; the letter names the item."""
    shop = app.pipeline("shop", version="1", retry_limit=0, buffer=10)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def broken(number: int) -> int:
        if number == 77:
            raise ValueError("no")
        return number

    with app.worker():
        run = shop.submit(200)
        with pytest.raises(JobFailedError, match="no"):
            run.result(RUN)
    (letter,) = app.dead_letters.find(kind="execution")
    assert letter.transition_key == f"{run.id}:1:1:77"


def test_rejected_items_are_recorded_and_their_siblings_continue(app: Windlass):
    """P5.1: by RejectItem without a retry, and by recovery after the retries."""
    shop = app.pipeline("shop", version="1", include_payload=True)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step(recover_on_failure=True, retry_limit=1, retry_wait=0.01)
    def check(number: int) -> int:
        if number == 1:
            raise RejectItem("no price")
        if number == 2:
            raise ConnectionError("away")
        return number

    with app.worker():
        assert shop.submit(5).result(RUN) == [0, 3, 4]
    rejects = sorted(app.rejects.find(), key=lambda one: one.item)
    assert [(one.item, one.error_class, one.retries_observed) for one in rejects] == [
        ("1", "RejectItem", 0),
        ("2", "ConnectionError", 1),
    ]


def test_the_only_item_rejected_ends_the_execution_with_nothing(app: Windlass):
    """P5.1: it SUCCEEDS with None."""
    shop = app.pipeline("shop", version="1")
    called: list[int] = []

    @shop.step
    def check(number: int) -> int:
        raise RejectItem("no")

    @shop.step
    def never(number: int) -> int:
        called.append(number)
        return number

    with app.worker():
        run = shop.submit(5)
        assert run.result(RUN) is None
        assert run.status() is ExecutionStatus.SUCCEEDED
    assert called == []
    assert len(app.rejects.find().items) == 1


def test_the_same_key_returns_the_same_execution_and_another_input_is_a_conflict(app: Windlass):
    """P3.1: per tenant, pipeline and version."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def echo(raw: dict) -> dict:
        return raw

    first = shop.submit({"a": 1, "b": 2}, key="k")
    again = shop.submit({"b": 2, "a": 1}, key="k")
    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
    assert shop.submit({"a": 1}, key="k", tenant="other").duplicate is False
    with pytest.raises(KeyConflictError, match="another input"):
        shop.submit({"a": 2}, key="k")
    with pytest.raises(KeyConflictError, match="another input"):
        shop.submit_many([{"a": 3}, {"a": 4}], keys=["new", "new"])
    assert len(app.executions.find(tenant="default").items) == 1


def test_a_paused_execution_stops_at_its_next_boundary_and_continues_when_resumed(app: Windlass):
    """P2.2: also between the parts of its items."""
    shop = app.pipeline("shop", version="1", buffer=10)
    ran: list[int] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step(concurrency=1)
    def note(number: int) -> int:
        ran.append(number)
        if number == 20:
            run.pause()
        return number

    with isolated(app, url=app.url if not app.url.startswith("sqlite") else "sqlite://"):
        run = shop.submit(50)
        drain(app)
        assert run.status() is ExecutionStatus.PAUSED
        stopped_at = len(ran)
        assert 20 <= stopped_at < 50
        assert run.resume()
        drain(app)
        assert run.result(0) == list(range(50))
    assert sorted(ran) == list(range(50))


def test_a_canceled_execution_cancels_its_parts(app: Windlass):
    """P2.7: running ones are notified, waiting ones are removed."""
    shop = app.pipeline("shop", version="1", buffer=5)
    began: list[int] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    async def hold(number: int) -> int:
        began.append(number)
        await asyncio.sleep(RUN)
        return number

    with app.worker():
        run = shop.submit(100)
        until(lambda: began, "items to begin")
        assert run.cancel()
        assert run.join(RUN) is ExecutionStatus.CANCELED


def test_virtual_time_runs_retries_of_items(app: Windlass):
    """P4.2: nothing starts before its due time."""
    shop = app.pipeline("shop", version="1", retry_wait=60, max_backoff=60, jitter=False)
    tries: list[int] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def unsteady(number: int) -> int:
        if number == 1:
            tries.append(number)
            if len(tries) == 1:
                raise ConnectionError("later")
        return number

    with isolated(app):
        run = shop.submit(3)
        drain(app)
        assert (len(tries), run.status()) == (1, ExecutionStatus.WAIT_RETRY)
        advance(59)
        drain(app)
        assert len(tries) == 1
        advance(2)
        drain(app)
        assert run.result(0) == [0, 1, 2]


def test_an_ordered_item_that_waits_for_its_retry_holds_up_the_others_and_no_slot(app: Windlass):
    """P1.3, P4.2: the execution is due at the retry, not at once for the items behind it."""
    shop = app.pipeline("shop", version="1", retry_wait=60, max_backoff=60, jitter=False, ordered=True)
    tries: list[int] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def unsteady(number: int) -> int:
        tries.append(number)
        if tries == [0]:
            raise ConnectionError("later")
        return number

    with isolated(app):
        run = shop.submit(3)
        assert drain(app, limit=20)
        assert (tries, run.status()) == ([0], ExecutionStatus.WAIT_RETRY)
        advance(61)
        drain(app, limit=20)
        assert run.result(0) == [0, 1, 2]
