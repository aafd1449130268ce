"""Items that an expansion or transformation gives, and that cannot be stored."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from windlass import ExecutionStatus, Windlass
from windlass.testing import drain


@pytest.fixture
def app() -> Iterator[Windlass]:
    application = Windlass("sqlite:///:memory:")
    yield application
    application.close()


@pytest.mark.parametrize("item", ["text", object(), "x" * 300_000], ids=["other type", "no JSON", "too large"])
@pytest.mark.parametrize("kind", ["expand", "item expansion", "transform"])
def test_an_item_that_cannot_be_stored_is_not_retried(app: Windlass, kind: str, item: Any):
    """P4.1: it would be the same in every attempt, as what a step returns."""
    shop = app.pipeline("shop", retry_limit=3, retry_wait=0)
    gives: Any = Iterator[int] if item == "text" else Iterator[Any]
    calls: list[int] = []

    def bad(number: int) -> Any:
        calls.append(number)
        yield 1
        yield item

    def bad_stream(numbers: Iterable[int]) -> Any:
        yield from bad(sum(numbers))

    bad.__annotations__["return"] = bad_stream.__annotations__["return"] = gives
    if kind != "expand":

        @shop.expand
        def one(number: int) -> Iterator[int]:
            yield number

    if kind == "transform":
        shop.transform(bad_stream)
    else:
        shop.expand(bad)
    run = shop.submit(7)
    drain(app)
    assert (run.status(), calls) == (ExecutionStatus.DLQ, [7])
    (letter,) = app.dead_letters.find(kind="execution")
    assert (letter.terminal_reason, letter.error_code) == ("non_retryable", "ValueNotStoredError")
    assert "an item of step 'bad" in letter.error_message


def test_items_before_one_that_cannot_be_stored_are_kept_by_a_recovery(app: Windlass):
    """P5.1: a recovered expansion keeps what it had given."""
    shop = app.pipeline("shop", retry_limit=3, retry_wait=0, recover_on_failure=True)

    @shop.expand
    def numbers(count: int) -> Iterator[Any]:
        yield from range(count)
        yield object()

    @shop.step
    def double(number: int) -> int:
        return number * 2

    run = shop.submit(3)
    drain(app)
    assert run.result(0) == [0, 2, 4]
    (reject,) = app.rejects.find()
    assert (reject.error_class, reject.retries_observed) == ("ValueNotStoredError", 0)
