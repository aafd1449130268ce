"""The correlation id of an execution, in all of its records."""

from collections.abc import Iterator

import pytest

from tests.support.waiting import until
from windlass import JobContext, JobDeadLettered, JobFailedError, RejectItem, Windlass

RUN = 60.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


@pytest.mark.parametrize("given", [None, "order-7"])
def test_correlation_id_is_inherited_by_steps_items_rejects_letters_and_events(app: Windlass, given: str | None):
    """P2.6: given at submit, else the id of the execution."""
    shop = app.pipeline("shop", version="1", retry_limit=0, buffer=5)
    seen: set[str | None] = set()
    letters: list[JobDeadLettered] = []
    app.on(JobDeadLettered)(letters.append)

    @shop.expand
    def numbers(number: int, ctx: JobContext) -> Iterator[int]:
        seen.add(ctx.correlation_id)
        yield from range(number)

    @shop.step
    def check(number: int, ctx: JobContext) -> int:
        seen.add(ctx.correlation_id)
        if number == 1:
            raise RejectItem("no")
        return number

    @shop.reduce
    def fail(numbers: Iterator[int], ctx: JobContext) -> int:
        seen.add(ctx.correlation_id)
        raise ValueError("no")

    with app.worker():
        run = shop.submit(20, correlation_id=given)
        with pytest.raises(JobFailedError):
            run.result(RUN)
        until(lambda: letters, "the event")
    expected = given or str(run.id)
    (reject,) = app.rejects.find()
    (letter,) = app.dead_letters.find(kind="execution")
    assert seen == {expected}
    assert app.executions.get(run.id).correlation_id == expected
    assert (reject.correlation_id, letter.correlation_id, letters[0].correlation_id) == (expected,) * 3
