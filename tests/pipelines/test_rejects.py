"""Rejects of executions on every store: what is recorded, by which steps, and when too many end an execution."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from windlass import ExecutionStatus, JobContext, JobFailedError, Pipeline, Reject, RejectItem, Windlass

RUN = 60.0


@dataclass
class Line:
    number: int


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def rejects(app: Windlass) -> list[Reject]:
    return sorted(app.rejects.find(), key=lambda one: one.item)


def test_a_reject_has_the_whole_envelope(app: Windlass):
    """P5.2: under snake case names, and in camel case as other systems know them."""
    shop = app.pipeline("shop", version="1", include_payload=True)

    @shop.expand
    def lines(number: int) -> Iterator[Line]:
        return map(Line, range(number))

    @shop.step(recover_on_failure=True, retry_limit=2, retry_wait=0.01)
    def price(line: Line) -> Line:
        if line.number == 1:
            raise ValueError("no price")
        return line

    with app.worker():
        run = shop.submit(3, key="k", tenant="acme", correlation_id="trace-1")
        run.result(RUN)
    (reject,) = rejects(app)
    assert (reject.tenant_id, reject.execution_id, reject.idempotency_key) == ("acme", str(run.id), "k")
    assert (reject.correlation_id, reject.pipeline, reject.step_name, reject.item) == ("trace-1", "shop", "price", "1")
    assert (reject.retries_observed, reject.retry_limit, reject.final_attempt) == (2, 2, True)
    assert (reject.error_class, reject.error_message) == ("ValueError", "ValueError: no price")
    assert (reject.reject_scope, reject.item_count, reject.payload) == ("ITEM", 1, Line(1))
    assert len(reject.item_fingerprint) == 64
    assert reject.step_target.startswith("pipeline/shop@1#")
    assert app.executions.get(run.id, tenant="acme").rejected == 1
    assert set(reject.envelope()) == {
        *("tenantId", "executionId", "correlationId", "idempotencyKey", "stepName", "stepTarget", "rejectScope"),
        *("retriesObserved", "retryLimit", "finalAttempt", "errorClass", "errorMessage", "rejectedAtEpochMs"),
        *("itemFingerprint", "itemCount", "payload"),
    }


def test_an_item_is_not_kept_without_include_payload(app: Windlass):
    """P5.2: the payload is there only on request."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def check(number: int) -> int:
        raise RejectItem("no")

    with app.worker():
        shop.submit(5).result(RUN)
    (reject,) = rejects(app)
    assert (reject.payload, reject.item) == (None, "")


@pytest.mark.parametrize("kind", ["expand", "transform", "reduce"])
def test_items_that_a_stream_step_rejects_are_recorded_once_however_often_it_runs(app: Windlass, kind: str):
    """P5.1, P5.3: keyed by fingerprint and occurrence, which distinguishes equal items."""
    shop = app.pipeline("shop", version="1", buffer=2, retry_wait=0.01, include_payload=True)
    _declare_sieve(shop, kind)
    with app.worker():
        run = shop.submit(12)
        assert run.result(RUN) == [0, 2, 4, 6, 8, 10]
    found = rejects(app)
    assert sorted(one.payload for one in found) == [0, 0, 1, 1, 2, 2]
    assert {one.reject_scope for one in found} == {"ITEM"}
    assert {one.error_class for one in found} == {"RejectItem"}
    assert app.executions.get(run.id).rejected == 6


def _declare_sieve(shop: Pipeline, kind: str) -> None:
    """Reject odd numbers in a step of this kind, which fails twice."""
    tries: list[int] = []

    def sift(numbers: Iterable[int], ctx: JobContext) -> Iterator[int]:
        tries.append(1)
        for number in numbers:
            if number % 2:
                ctx.reject(number % 3, "odd")
            else:
                yield number
        if len(tries) < 3:
            raise ConnectionError("again")

    if kind == "expand":

        @shop.expand
        def lines(number: int, ctx: JobContext) -> Iterator[int]:
            return sift(range(number), ctx)

    else:

        @shop.expand
        def all_lines(number: int) -> Iterator[int]:
            return iter(range(number))

    if kind == "transform":

        @shop.transform
        def even(numbers: Iterable[int], ctx: JobContext) -> Iterator[int]:
            return sift(numbers, ctx)

    if kind == "reduce":

        @shop.reduce
        def total(numbers: Iterable[int], ctx: JobContext) -> list[int]:
            return list(sift(numbers, ctx))


def test_rejecting_another_item_is_refused_in_a_step_of_one(app: Windlass):
    """P5.1: it would be recorded, and go on all the same."""
    shop = app.pipeline("shop", version="1", retry_limit=0)

    @shop.step
    def check(number: int, ctx: JobContext) -> int:
        ctx.reject(number, "no")
        return number

    with app.worker(), pytest.raises(JobFailedError, match="raise RejectItem"):
        shop.submit(5).result(RUN)
    assert rejects(app) == []


def test_a_recovered_reduction_rejects_its_stream_with_a_sample_and_a_count(app: Windlass):
    """P5.1: at most five items are shown; the execution succeeds with nothing."""
    shop = app.pipeline("shop", version="1", include_payload=True)

    @shop.expand
    def lines(number: int) -> Iterator[Line]:
        return map(Line, range(number))

    @shop.reduce(recover_on_failure=True, retry_limit=0)
    def total(numbers: Iterable[Line]) -> int:
        raise ValueError("no sum")

    with app.worker():
        run = shop.submit(300)
        assert run.result(RUN) is None
        assert run.status() is ExecutionStatus.SUCCEEDED
    (reject,) = rejects(app)
    assert (reject.reject_scope, reject.item_count, reject.item) == ("STREAM", 300, "")
    assert reject.payload == [Line(number) for number in range(5)]
    assert app.executions.get(run.id).rejected == 300


@pytest.mark.parametrize("kind", ["expand", "transform", "nested"])
def test_items_emitted_by_a_recovered_expansion_continue(app: Windlass, kind: str):
    """P5.1: also what was not stored yet when it failed, and what it had rejected itself."""
    shop = app.pipeline("shop", version="1", buffer=4, include_payload=True)
    _declare_broken(shop, kind)
    with app.worker():
        assert shop.submit(5).result(RUN) == [0, 2, 4, 6, 8, 10, 12]
    item, stream = sorted(rejects(app), key=lambda one: one.reject_scope)
    assert (item.reject_scope, item.payload) == ("ITEM", 77)
    assert (stream.reject_scope, stream.item_count, stream.error_class) == ("STREAM", 1, "ConnectionError")
    assert stream.payload == ([5] if kind == "transform" else 5)


def _declare_broken(shop: Pipeline, kind: str) -> None:
    """Emit seven items and reject one in a step of this kind, which then fails."""

    def broken(ctx: JobContext) -> Iterator[int]:
        yield from range(6)
        ctx.reject(77, "not this one")
        yield 6
        raise ConnectionError("the rest is away")

    if kind == "expand":

        @shop.expand(recover_on_failure=True, retry_limit=0)
        def lines(number: int, ctx: JobContext) -> Iterator[int]:
            return broken(ctx)

    else:

        @shop.expand
        def some(number: int) -> Iterator[int]:
            return iter([number])

    if kind == "transform":

        @shop.transform(recover_on_failure=True, retry_limit=0)
        def again(numbers: Iterable[int], ctx: JobContext) -> Iterator[int]:
            return broken(ctx)

    if kind == "nested":

        @shop.expand(recover_on_failure=True, retry_limit=0)
        def more(number: int, ctx: JobContext) -> Iterator[int]:
            return broken(ctx)

    @shop.step
    def double(number: int) -> int:
        return number * 2


@pytest.mark.parametrize(("limit", "bad", "ends"), [(3, 3, False), (3, 4, True), (0.1, 20, False), (0.1, 21, True)])
def test_too_many_rejected_items_end_the_execution_as_reject_limit(
    app: Windlass, limit: int | float, bad: int, ends: bool
):
    """P5.1: `max_rejected` as a number, or as a share; counted over all parts of the items."""
    shop = app.pipeline("shop", version="1", max_rejected=limit, buffer=50)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        if number < bad:
            raise RejectItem("no")
        return number

    with app.worker():
        run = shop.submit(200)
        if not ends:
            assert len(run.result(RUN)) == 200 - bad
            return
        with pytest.raises(JobFailedError, match="RejectLimitError") as raised:
            run.result(RUN)
    assert raised.value.reason == "reject_limit"
    assert app.executions.get(run.id).rejected == bad


def test_too_many_rejects_of_a_few_items_end_the_execution(app: Windlass):
    """P5.1: of items that the execution's own claim runs."""
    shop = app.pipeline("shop", version="1", max_rejected=0.5)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        raise RejectItem("no")

    with app.worker(), pytest.raises(JobFailedError) as raised:
        shop.submit(4).result(RUN)
    assert raised.value.reason == "reject_limit"


@pytest.mark.parametrize("kind", ["step", "reduce", "in a reduce", "in an expand"])
def test_a_single_value_and_a_stream_count_against_the_limit(app: Windlass, kind: str):
    """P5.1: the reject is recorded all the same."""
    shop = app.pipeline("shop", version="1", max_rejected=2 if "in" in kind else 0)

    if kind == "step":

        @shop.step
        def check(number: int) -> int:
            raise RejectItem("no")

    else:

        @shop.expand
        def lines(number: int, ctx: JobContext) -> Iterator[int]:
            for one in range(number):
                if kind == "in an expand":
                    ctx.reject(one, "no")
                yield one

        @shop.reduce
        def total(numbers: Iterable[int], ctx: JobContext) -> int:
            for one in numbers:
                if kind == "in a reduce":
                    ctx.reject(one, "no")
            if kind == "reduce":
                raise RejectItem("no")
            return 1

    with app.worker(), pytest.raises(JobFailedError) as raised:
        shop.submit(3).result(RUN)
    assert raised.value.reason == "reject_limit"
    assert len(rejects(app)) == (3 if "in" in kind else 1)


def test_an_expansion_passes_on_a_single_value_that_it_does_not_take(app: Windlass):
    """P1.2: it is a stream of one, also where the result is a list of items."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def parse(number: int) -> int | str:
        return number or "nothing"

    @shop.expand
    def lines(number: int) -> Iterator[str]:
        return map(str, range(number))

    with app.worker():
        assert shop.submit(2).result(RUN) == ["0", "1"]
        run = shop.submit(0)
        assert run.result(RUN) == ["nothing"]
        assert list(run.items()) == ["nothing"]
