"""Rounds of steps that wait outside: what was sent out before an execution started over answers nothing after it."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.support.pipeline_invariants import check_executions
from windlass import ExecutionStateError, ExecutionStatus, JobContext, Pipeline, WaitNotFoundError, Windlass
from windlass.testing import advance, drain, isolated

HOUR = 3600
DLQ, WAITING = ExecutionStatus.DLQ, ExecutionStatus.WAITING_EXTERNAL


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def private(app: Windlass) -> AbstractContextManager[Any]:
    """Run what is due in this thread, with a clock that tests advance."""
    return isolated(app, url="sqlite://" if app.url.startswith("sqlite") else app.url)


class Mails:
    """What the body of a step has sent out; it breaks afterwards for some values."""

    def __init__(self, *breaks: str) -> None:
        self.breaks = set(breaks)
        self.sent: dict[str, tuple[str, str]] = {}
        """Interaction ids and tokens, by value."""

    def send(self, value: str, ctx: JobContext) -> dict[str, str]:
        self.sent[value] = (ctx.interaction_id, ctx.token)
        if value in self.breaks:
            raise ConnectionError("it was sent, but not confirmed")
        return {"value": value}


def refused(app: Windlass, interaction: str, token: str) -> None:
    """Check that neither of both answers anything."""
    for given in ({"interaction_id": interaction}, {"token": token}):
        with pytest.raises(ExecutionStateError, match="has started over"):
            app.executions.complete(**given, answer=True)


def test_an_answer_about_an_item_is_never_given_to_the_one_that_took_its_place(app: Windlass):
    """P8.1, P6.3: also where the body had sent its token, and its wait was never stored."""
    mails, values = Mails("b"), ["a", "b"]
    orders = app.pipeline("orders", retry_limit=0)

    @orders.expand
    def lines(number: int) -> Iterator[str]:
        yield from values

    @orders.await_external(timeout=HOUR, answer=bool)
    def ask(line: str, ctx: JobContext) -> dict[str, str]:
        return mails.send(line, ctx)

    @orders.reduce
    def total(answers: Iterable[bool]) -> list[bool]:
        return list(answers)

    @orders.await_external(timeout=HOUR, answer=int)
    def last(answers: list[bool]) -> list[bool]:
        return answers

    with private(app):
        run = orders.submit(1)
        drain(app)
        assert (run.status(), mails.sent["b"][0]) == (DLQ, f"{run.id}:1:1")
        values[:] = ["c", "d"]
        app.executions.redrive(run.id, from_step="lines")
        with pytest.raises(ExecutionStateError, match="has started over"):
            app.executions.complete(mails.sent["b"][1], True)
        drain(app)
        assert [mails.sent[one][0] for one in values] == [f"{run.id}:1:0~2", f"{run.id}:1:1~2"]
        for one in ("a", "b"):
            refused(app, *mails.sent[one])
        assert len(app.executions.pending("orders")) == 2
        app.executions.complete_many([(mails.sent["d"][1], False), (mails.sent["c"][1], True)])
        drain(app)
        app.executions.complete(interaction_id=f"{run.id}:3", answer=3)  # it was never asked before
        drain(app)
        assert run.result(0) == 3


def test_an_answer_about_an_earlier_value_is_refused_after_a_start_over(app: Windlass):
    """P8.1, P6.3: whatever round its token is of; a step that the execution had not reached begins with its first."""
    mails, values = Mails("first", "second"), ["first"]
    orders = app.pipeline("orders", retry_limit=0)

    @orders.step
    def parse(number: int) -> str:
        return values[-1]

    @orders.await_external(timeout=HOUR, answer=bool)
    def ask(value: str, ctx: JobContext) -> dict[str, str]:
        return mails.send(value, ctx)

    @orders.await_external(timeout=HOUR, answer=int)
    def confirm(agreed: bool) -> bool:
        return agreed

    with private(app):
        run = orders.submit(1)
        for value, interaction in (("first", "1"), ("second", "1~2"), ("third", "1~3")):
            values.append(value)
            if value != "first":
                app.executions.redrive(run.id, from_step="parse")
                for sent in mails.sent.values():
                    with pytest.raises(ExecutionStateError, match="has started over"):
                        app.executions.complete(sent[1], True)
            drain(app)
            assert mails.sent[value][0] == f"{run.id}:{interaction}"
        for one in ("first", "second"):
            refused(app, *mails.sent[one])
        assert run.status() is WAITING
        app.executions.complete(mails.sent["third"][1], True)
        drain(app)
        app.executions.complete(interaction_id=f"{run.id}:2", answer=7)
        drain(app)
        assert run.result(0) == 7


def test_a_round_that_was_begun_after_a_timeout_is_over_too(app: Windlass):
    """P8.1, P6.3: asked, expired, asked again, and broken before its wait was stored."""
    mails, values = Mails("first"), ["first"]
    mails.breaks.clear()
    orders = app.pipeline("orders", retry_limit=0)

    @orders.step
    def parse(number: int) -> str:
        return values[-1]

    @orders.await_external(timeout=HOUR, answer=bool)
    def ask(value: str, ctx: JobContext) -> dict[str, str]:
        return mails.send(value, ctx)

    with private(app):
        run = orders.submit(1)
        drain(app)
        advance(HOUR + 1)
        drain(app)
        mails.breaks.add("first")
        app.executions.redrive(run.id)
        drain(app)
        assert (run.status(), mails.sent["first"][0]) == (DLQ, f"{run.id}:1~2")
        values.append("second")
        app.executions.redrive(run.id, from_step="parse")
        drain(app)
        refused(app, *mails.sent["first"])
        assert mails.sent["second"][0] == f"{run.id}:1~3"
        app.executions.complete(mails.sent["second"][1], True)
        drain(app)
        assert run.result(0) is True


def test_a_timeout_and_a_start_over_make_a_second_round(app: Windlass):
    """P8.1: `~2`, and no gap in the numbers."""
    orders = app.pipeline("orders")

    @orders.step
    def parse(number: int) -> int:
        return number

    @orders.await_external(timeout=HOUR, answer=int)
    def ask(number: int) -> int:
        return number

    with private(app):
        run = orders.submit(1)
        drain(app)
        advance(HOUR + 1)
        drain(app)
        app.executions.redrive(run.id, from_step="parse")
        drain(app)
        assert [wait.interaction_id for wait in app.executions.pending()] == [f"{run.id}:1~2"]


def test_an_item_that_was_parked_when_its_execution_died_waits_in_a_new_round(app: Windlass):
    """P8.1: without a start over its value is the same; its first wait has ended with the execution."""
    mails = Mails("b")
    orders = app.pipeline("orders", retry_limit=0)

    @orders.expand
    def lines(number: int) -> Iterator[str]:
        yield from "ab"

    @orders.await_external(timeout=HOUR, answer=bool)
    def ask(line: str, ctx: JobContext) -> dict[str, str]:
        return mails.send(line, ctx)

    with private(app):
        run = orders.submit(1)
        drain(app)
        broken = mails.sent["b"][1]
        mails.breaks.clear()
        app.executions.redrive(run.id)
        app.executions.complete(broken, False)  # the same item: its mail had gone out
        drain(app)
        (wait,) = app.executions.pending()
        assert wait.interaction_id == f"{run.id}:1:0~2"
        app.executions.complete(wait.token, True)
        drain(app)
        assert run.result(0) == [True, False]


def test_a_repeated_answer_by_correlation_id_is_to_the_last_round(app: Windlass):
    """P8.2: not ambiguous after a start over, which has closed the round before; that one is not reported as held."""
    orders, broken = app.pipeline("orders", retry_limit=0), [True]

    @orders.await_external(timeout=HOUR, answer=int)
    def ask(number: int) -> int:
        return number

    @orders.step
    def ship(number: int) -> int:
        if broken:
            raise ConnectionError("later")
        return number

    with private(app):
        run = orders.submit(1, correlation_id="order-1")
        drain(app)
        app.executions.complete(correlation_id="order-1", answer=1)
        drain(app)
        broken.clear()
        app.executions.redrive(run.id, from_step="ask")
        with pytest.raises(WaitNotFoundError, match="it has not begun to wait"):
            app.executions.complete(correlation_id="order-1", answer=2)
        drain(app)
        found = [app.executions.complete(correlation_id="order-1", answer=number) for number in (2, 3)]
        assert [(one.duplicate, one.answer) for one in found] == [(False, 2), (True, 2)]
        drain(app)
        assert run.result(0) == 2


def declared(url: str, version: str) -> tuple[Windlass, Pipeline]:
    """Return an application with one version of a pipeline."""
    app = Windlass(url)
    app.migrate()
    orders = app.pipeline("orders", version=version, buffer=5)

    @orders.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @orders.await_external(timeout=HOUR, answer=int)
    async def ask(line: int) -> int:
        return line

    if version == "2":

        @orders.step
        async def double(number: int) -> int:
            return number * 2

    @orders.reduce
    def total(numbers: Iterable[int]) -> int:
        return sum(numbers)

    return app, orders


@pytest.mark.parametrize("count", [3, 20])
def test_items_that_wait_go_along_when_their_execution_is_moved_to_another_version(store_url: str, count: int):
    """P1.4, P8.1: they are asked again at once, in parts of the new version; what was asked before is over."""
    old, orders = declared(store_url, "1")
    run = orders.submit(count)
    drain(old)
    before = [wait.token for wait in old.executions.pending(limit=100)]
    old.close()
    new, _ = declared(store_url, "2")
    new.executions.redrive(run.id, to_version="2")
    drain(new)
    for token in before[:2]:
        with pytest.raises(ExecutionStateError, match="has started over"):
            new.executions.complete(token, 1)
    waits = new.executions.pending(limit=100).items
    assert (len(before), len(waits)) == (count, count)
    new.executions.complete_many([(wait.token, 1) for wait in waits])
    drain(new)
    assert new.executions.get(run.id).result == 2 * count
    check_executions(store_url)
    new.close()
