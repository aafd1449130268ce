"""What steps that wait outside cost others, and how long their rows are kept."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.stores.recording import recorded
from tests.support.facts import one
from windlass import Windlass
from windlass.stores import queries
from windlass.stores.plan import Step
from windlass.stores.plans import execution_retention
from windlass.testing import drain

HOUR = 3600


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def record(app: Windlass) -> list[Step]:
    """Every step of the application's plans from now on."""
    steps: list[Step] = []
    database: Any = app.database

    def call(method: Any, plan: Any, *args: Any, **kwargs: Any) -> Any:
        return method(recorded(steps, plan), *args, **kwargs)

    for name in ("run", "arun", "read", "aread"):
        setattr(database, name, partial(call, getattr(database, name)))
    return steps


def of_waits(dialect: str) -> set[str]:
    """The statements about waits."""
    return {name for name, query in queries.load(dialect).items() if query.source.endswith("external_waits.sql")}


@pytest.mark.parametrize("ends", ["well", "badly", "canceled"])
def test_pipelines_that_wait_for_nothing_pay_for_no_statement_of_waits(app: Windlass, ends: str):
    """P8.1: neither for single values nor for items, at whatever end, nor when they are purged."""
    shop = app.pipeline("shop", buffer=5, retry_limit=0)

    @shop.step
    def parse(number: int) -> int:
        return number

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def price(line: int) -> int:
        if ends == "badly" and line == 3:
            raise ValueError("no price")
        return line

    @shop.reduce
    def total(prices: Iterable[int]) -> int:
        return sum(prices)

    steps = record(app)
    run = shop.submit(12)
    if ends == "canceled":
        run.cancel()
    drain(app)
    app.database.run(execution_retention.purge, -(10**9), 100)
    names = {step.name for step in steps}
    assert {"insert_executions", "end_executions", "old_executions"} <= names
    found = of_waits("sqlite" if app.url.startswith("sqlite") else "postgres") | {"purge_external_waits"}
    assert names & found == set()


def test_waits_are_kept_until_their_execution_is_purged(app: Windlass):
    """P8.2, P2.1: so that a repeated answer is known as one; then they go with it."""
    shop = app.pipeline("shop")

    @shop.await_external(timeout=HOUR)
    def ask(number: int) -> int:
        return number

    run = shop.submit(7)
    drain(app)
    (wait,) = app.executions.pending()
    app.executions.complete(wait.token, 1)
    drain(app)
    assert app.executions.complete(wait.token, 2).duplicate
    assert run.result(0) == 1
    app.database.run(execution_retention.purge, -(10**9), 100)
    assert one(app.url, "SELECT count(*) FROM windlass_external_wait") == 0
    assert one(app.url, "SELECT count(*) FROM windlass_execution") == 0
