"""Steps that wait for answers from outside: of the items of an expansion, on every store."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from threading import Thread
from typing import Any

import pytest

from tests.engine.damage import execute
from tests.support.waiting import until
from windlass import (
    AwaitTimeoutError,
    ExecutionStatus,
    InvalidOptionError,
    JobContext,
    Pipeline,
    SerializationError,
    Windlass,
    WindlassError,
)
from windlass.testing import advance, drain, isolated

HOUR = 3600
RUN = 90.0


class Shop:
    """A pipeline whose items each wait for an answer."""

    def __init__(self, app: Windlass, waits: dict[str, Any] | None = None, **options: Any) -> None:
        self.app = app
        self.asked: list[str] = []
        self.tokens: list[str] = []
        self.orders: Pipeline = app.pipeline("orders", **options)
        orders = self.orders

        @orders.expand
        def lines(count: int) -> Iterator[int]:
            return iter(range(count))

        @orders.await_external(timeout=HOUR, answer=int, **(waits or {}))
        async def ask(number: int, ctx: JobContext) -> dict:
            self.asked.append(ctx.interaction_id)
            self.tokens.append(ctx.token)
            return {"number": number}

        @orders.step
        async def double(number: int) -> int:
            return number * 2

        @orders.reduce
        def total(numbers: Iterable[int]) -> list[int]:
            return list(numbers)

    def has_asked(self, place: int) -> bool:
        """Return whether so many bodies, and one more, have a token."""
        return len(self.tokens) > place

    def answer_all(self) -> int:
        """Answer what waits, with the number of each; return how many."""
        waits = self.app.executions.pending("orders", limit=1000).items
        self.app.executions.complete_many([(wait.token, wait.request["number"]) for wait in waits])
        return len(waits)


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def private(app: Windlass) -> AbstractContextManager[Any]:
    """Run what is due in this thread, with a clock that tests advance."""
    return isolated(app, url="sqlite://" if app.url.startswith("sqlite") else app.url)


@pytest.mark.parametrize("count", [1, 3, 300])
def test_every_item_waits_and_continues_with_its_answer(app: Windlass, count: int):
    """P8.1: with and without parts; the items go on in their order, each asked once."""
    shop = Shop(app, buffer=50)
    with private(app):
        run = shop.orders.submit(count)
        drain(app)
        assert run.status() is ExecutionStatus.WAITING_EXTERNAL
        assert shop.answer_all() == count
        drain(app)
        assert run.result(0) == [number * 2 for number in range(count)]
        assert sorted(shop.asked) == sorted(f"{run.id}:1:{number}" for number in range(count))


def test_items_are_answered_one_by_one_while_others_wait(app: Windlass):
    """P8.1: what is answered goes on at once, the part is due for the rest."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit(3)
        drain(app)
        for left in (2, 1, 0):
            first = app.executions.pending("orders").items[0]
            app.executions.complete(first.token, 7)
            drain(app)
            assert len(app.executions.pending("orders")) == left
        assert run.result(0) == [14, 14, 14]


def test_an_unanswered_item_ends_its_execution_at_the_deadline(app: Windlass):
    """P8.2, P6.1: `await_timeout` with the item's key; the others' waits end with the execution."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit(200)
        drain(app)
        waits = app.executions.pending("orders", limit=500).items
        app.executions.complete_many([(wait.token, 1) for wait in waits if wait.item != "150"])
        drain(app)
        assert run.status() is ExecutionStatus.WAITING_EXTERNAL
        advance(HOUR + 1)
        drain(app)
        (letter,) = app.dead_letters.find(kind="execution")
        assert (letter.terminal_reason, letter.transition_key) == ("await_timeout", f"{run.id}:1:1:150")
        app.executions.redrive(run.id)
        drain(app)
        (wait,) = app.executions.pending("orders")
        assert wait.interaction_id == f"{run.id}:1:150~2"
        app.executions.complete(wait.token, 1)
        drain(app)
        assert run.result(0) == [2] * 200


def test_items_of_a_step_that_recovers_are_rejected_at_the_deadline(app: Windlass):
    """P5.1, P8.2: their siblings go on."""
    shop = Shop(app, {"recover_on_failure": True})
    with private(app):
        run = shop.orders.submit(5)
        drain(app)
        waits = app.executions.pending("orders").items
        app.executions.complete_many([(wait.token, 1) for wait in waits[:2]])
        advance(HOUR + 1)
        drain(app)
        assert run.result(0) == [2, 2]
        assert [reject.error_class for reject in app.rejects.find()] == ["AwaitTimeoutError"] * 3
        with pytest.raises(AwaitTimeoutError, match="deadline has passed"):
            app.executions.complete(waits[4].token, 1)


def test_ordered_items_wait_one_after_the_other(app: Windlass):
    """P1.3, P8.1: an item is asked when the one before it has ended."""
    shop = Shop(app, {"ordered": True})
    with private(app):
        run = shop.orders.submit(3)
        for number in range(3):
            drain(app)
            assert shop.asked == [f"{run.id}:1:{one}" for one in range(number + 1)]
            assert shop.answer_all() == 1
        drain(app)
        assert run.result(0) == [0, 2, 4]


def test_answers_of_items_are_kept_while_an_execution_is_paused(app: Windlass):
    """P8.1: with parts of their own."""
    shop = Shop(app, buffer=10)
    with private(app):
        run = shop.orders.submit(30)
        drain(app)
        run.pause()
        shop.answer_all()
        drain(app)
        assert run.status() is ExecutionStatus.PAUSED
        run.resume()
        drain(app)
        assert run.result(0) == [number * 2 for number in range(30)]


def test_a_resource_is_held_by_the_call_and_not_by_the_wait(app: Windlass):
    """P8.1, P1.3: all items are asked, although one permit is there for all of them."""
    shop = Shop(app, {"resource": "mail"})
    with private(app):
        app.configure_resource("mail", max_concurrent=1)
        run = shop.orders.submit(4)
        drain(app)
        assert (len(shop.asked), run.status()) == (4, ExecutionStatus.WAITING_EXTERNAL)
        shop.answer_all()
        drain(app)
        assert run.result(0) == [0, 2, 4, 6]


def test_many_answers_are_stored_all_or_none(app: Windlass):
    """P8.1: each is checked before anything is stored; the error names its place."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit(3)
        drain(app)
        waits = sorted(app.executions.pending("orders"), key=lambda wait: str(wait.item))
        tokens = [wait.token for wait in waits]
        with pytest.raises(SerializationError, match=r"answer 1 of 3.*must be int, got 'two'"):
            app.executions.complete_many([(tokens[0], 1), (tokens[1], "two"), (tokens[2], 3)])
        assert len(app.executions.pending("orders")) == 3
        done = app.executions.complete_many([(tokens[0], 1), (tokens[1], 2), (tokens[0], 9), (tokens[2], 3)])
        assert [(one.duplicate, one.answer) for one in done] == [(False, 1), (False, 2), (True, 1), (False, 3)]
        assert app.executions.complete_many([]) == []
        drain(app)
        assert run.result(0) == [2, 4, 6]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda token: (token[:-1], 2), r"answer 1 of 2, none of which is stored: the token is not valid"),
        (lambda token: token, r"pairs of a token and an answer, and got at place 1 str"),
        (lambda token: (token,), r"pairs of a token and an answer, and got at place 1 tuple"),
    ],
)
def test_a_wrong_one_of_many_answers_is_named(app: Windlass, wrong: Any, why: str):
    """P8.1: by its place, and not by its token; nothing is stored."""
    shop = Shop(app)
    with private(app):
        shop.orders.submit(2)
        drain(app)
        first, second = (wait.token for wait in app.executions.pending("orders"))
        with pytest.raises(WindlassError, match=why) as caught:
            app.executions.complete_many([(first, 1), wrong(second)])
        assert second[20:60] not in str(caught.value)
        assert len(app.executions.pending("orders")) == 2


def test_an_unreadable_answer_of_another_sender_hides_no_stored_one(app: Windlass):
    """P8.2, J7.9: the others of the call are stored, and it says so; the damaged one comes as its text."""
    shop = Shop(app)
    shop.orders.submit(2)
    drain(app)
    first, second = app.executions.pending("orders")
    app.executions.complete(first.token, 1)
    execute(app.url, "UPDATE windlass_external_wait SET type = 99 WHERE status = 'COMPLETED'")
    done = app.executions.complete_many([(first.token, 3), (second.token, 4)])
    assert [(one.duplicate, one.answer) for one in done] == [(True, "[[1],{}]"), (False, 4)]


def test_one_late_answer_of_many_stores_none(app: Windlass):
    """P8.2: those that are in time may be sent again without it."""
    shop = Shop(app)
    with private(app):
        first = shop.orders.submit(1)
        drain(app)
        advance(HOUR - 10)
        shop.orders.submit(1)
        drain(app)
        late, fine = app.executions.pending("orders")
        advance(20)
        with pytest.raises(AwaitTimeoutError, match="none of these answers is stored"):
            app.executions.complete_many([(fine.token, 1), (late.token, 1)])
        assert not app.executions.complete(fine.token, 1).duplicate
        drain(app)
        assert first.status() is ExecutionStatus.DLQ


def test_open_waits_are_listed_in_pages(app: Windlass):
    """P8.1: the first deadline first; also over several pipelines."""
    shop = Shop(app)
    other = app.pipeline("other")

    @other.await_external(timeout=60)
    def ask(number: int) -> None: ...

    with private(app):
        shop.orders.submit(7)
        other.submit(1)
        drain(app)
        seen, cursor = [], None
        while True:
            page = app.executions.pending(limit=3, cursor=cursor)
            seen += [(wait.pipeline, wait.item) for wait in page]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(seen, key=str) == sorted([*(("orders", str(n)) for n in range(7)), ("other", None)], key=str)
        with pytest.raises(InvalidOptionError, match="a cursor comes from the page before"):
            app.executions.pending(cursor="somewhere")


def test_answers_that_race_with_the_park_are_never_lost(app: Windlass):
    """P8.2: senders answer every token as soon as a body has it, before and after its part parks; each is given once.

    Several senders answer each wait: one of them wins, and the item goes on with that one's answer.
    """
    shop = Shop(app, buffer=20)
    count, won = 120, []

    def send(name: int) -> None:
        place = 0
        while place < count:
            until(partial(shop.has_asked, place), "the next token")
            done = app.executions.complete(shop.tokens[place], name * 1000)
            if not done.duplicate:
                won.append((name, done.interaction_id))
            place += 1

    with app.worker(concurrency=8):
        run = shop.orders.submit(count)
        senders = [Thread(target=send, args=(name,)) for name in range(3)]
        for one in senders:
            one.start()
        result = run.result(RUN)
        for one in senders:
            one.join()
    assert len({interaction for _, interaction in won}) == len(won) == count
    places = {interaction.rpartition(":")[2]: name for name, interaction in won}
    assert result == [places[str(number)] * 2000 for number in range(count)]
