"""Steps that wait for answers from outside: of single values, on every store."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from windlass import (
    AwaitTimeoutError,
    Completion,
    ConfigurationError,
    ExecutionStateError,
    ExecutionStatus,
    ExternalWait,
    InvalidOptionError,
    JobContext,
    Pipeline,
    WaitNotFoundError,
    Windlass,
)
from windlass.testing import adrain, advance, drain, isolated

HOUR = 3600
WAITING = ExecutionStatus.WAITING_EXTERNAL


@dataclass
class Approval:
    approved: bool


class Shop:
    """A pipeline with a step that waits, and what its bodies saw."""

    def __init__(self, app: Windlass, **options: Any) -> None:
        self.app = app
        self.asked: list[tuple[str, str]] = []
        """Interaction ids and tokens."""
        self.early: list[Any] = []
        """Answers that come while the body runs."""
        self.fails = False
        self.orders: Pipeline = app.pipeline("orders", version="1", retry_wait=10, jitter=False, **options)
        orders = self.orders

        @orders.step
        def parse(raw: dict) -> int:
            return int(raw["n"])

        @orders.await_external(timeout=HOUR, answer=Approval)
        def approval(number: int, ctx: JobContext) -> dict:
            self.asked.append((ctx.interaction_id, ctx.token))
            for answer in self.early:
                app.executions.complete(ctx.token, answer)
            if self.fails:
                raise ConnectionError("the mail server is down")
            return {"order": number}

        @orders.step
        def ship(approval: Approval) -> str:
            return "shipped" if approval.approved else "refused"

    def wait(self) -> ExternalWait:
        """Return the only wait."""
        (wait,) = self.app.executions.pending("orders")
        return wait


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def private(app: Windlass) -> AbstractContextManager[Any]:
    """Run what is due in this thread, with a clock that tests advance."""
    return isolated(app, url="sqlite://" if app.url.startswith("sqlite") else app.url)


def test_an_execution_waits_without_a_slot_and_continues_with_the_answer(app: Windlass):
    """P8.1: what the body returns is shown; the answer replaces the value, and has the type that the step names."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7}, key="seven")
        drain(app)
        wait = shop.wait()
        assert (run.status(), app.executions.find(status="WAITING_EXTERNAL").items[0].id) == (WAITING, run.id)
        assert (wait.interaction_id, wait.request, wait.step, wait.item) == (
            f"{run.id}:1",
            {"order": 7},
            "approval",
            None,
        )
        assert shop.asked == [(wait.interaction_id, wait.token)]
        assert app.executions.get(run.id).lease_until is None
        done = app.executions.complete(wait.token, {"approved": True})
        assert done == Completion(
            interaction_id=wait.interaction_id, execution_id=run.id, duplicate=False, answer=Approval(True)
        )
        drain(app)
        assert run.result(0) == "shipped"
        log = app.executions.history(run.id)
        assert [row.kind for row in log] == ["submitted", "step", "parked", "answered", "ended"]
        assert [row.version for row in log] == [1, 2, 3, 4, 5]
        assert app.executions.pending("orders").items == []


def test_the_first_answer_holds_also_after_the_end(app: Windlass):
    """P8.2: a repeat returns the first answer with `duplicate=True`, by each of the ways to address it."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7}, correlation_id="order-7")
        drain(app)
        token = shop.wait().token
        assert not app.executions.complete(interaction_id=f"{run.id}:1", answer=Approval(False)).duplicate
        for _ in range(2):
            for again in (
                app.executions.complete(token, Approval(True)),
                app.executions.complete(interaction_id=f"{run.id}:1", answer={"approved": True}),
                app.executions.complete(correlation_id="order-7", answer=Approval(True)),
            ):
                assert (again.duplicate, again.answer) == (True, Approval(False))
            drain(app)
            assert run.result(0) == "refused"


def test_an_answer_that_comes_before_the_execution_parks_is_kept(app: Windlass):
    """P8.2: the first of two such answers; the execution goes on at once, and its request is known."""
    shop = Shop(app)
    shop.early = [Approval(True), Approval(False)]
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        assert (run.result(0), len(shop.asked)) == ("shipped", 1)
        assert app.executions.complete(shop.asked[0][1], Approval(False)).answer == Approval(True)


def test_an_answer_makes_another_call_of_a_failed_body_unnecessary(app: Windlass):
    """P8.2: the body had sent its request out before it failed, and the answer stands."""
    shop = Shop(app)
    shop.early, shop.fails = [Approval(True)], True
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        advance(10)
        drain(app)
        assert (run.result(0), len(shop.asked)) == ("shipped", 1)


def test_a_wait_ends_at_its_deadline(app: Windlass):
    """P8.2, P6.1: an envelope with the reason `await_timeout`; later answers are an error."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        wait = shop.wait()
        advance(HOUR - 1)
        drain(app)
        assert run.status() is WAITING
        advance(2)
        with pytest.raises(AwaitTimeoutError, match="its deadline has passed"):
            app.executions.complete(wait.token, Approval(True))
        drain(app)
        assert run.status() is ExecutionStatus.DLQ
        (letter,) = app.dead_letters.find(kind="execution")
        assert (letter.terminal_reason, letter.error_code) == ("await_timeout", "AwaitTimeoutError")
        assert (letter.retryable, letter.transition_key) == (True, f"{run.id}:1:1")
        for given in ({"token": wait.token}, {"interaction_id": wait.interaction_id}):
            with pytest.raises(AwaitTimeoutError):
                app.executions.complete(**given, answer=Approval(True))
        assert app.executions.pending("orders").items == []


def test_a_redrive_begins_a_second_round_of_the_wait(app: Windlass):
    """P8.1: `~2`; the token of the first round is of no use any more."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        advance(HOUR + 1)
        drain(app)
        app.executions.redrive(run.id)
        drain(app)
        assert (run.status(), shop.wait().interaction_id) == (WAITING, f"{run.id}:1~2")
        assert [interaction for interaction, _ in shop.asked] == [f"{run.id}:1", f"{run.id}:1~2"]
        with pytest.raises(AwaitTimeoutError):
            app.executions.complete(shop.asked[0][1], Approval(True))
        app.executions.complete(shop.asked[1][1], Approval(True))
        drain(app)
        assert run.result(0) == "shipped"


def test_a_redrive_from_an_earlier_step_begins_a_new_round_of_an_answered_wait(app: Windlass):
    """P6.3, P8.1: what is approved may be another value now."""
    shop = Shop(app)
    broken = [True]

    @shop.orders.step(retry_limit=0)
    def book(text: str) -> str:
        if broken:
            raise ConnectionError("later")
        return f"{text}, booked"

    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        app.executions.complete(shop.wait().token, Approval(True))
        drain(app)
        assert run.status() is ExecutionStatus.DLQ
        broken.clear()
        app.executions.redrive(run.id, from_step="parse")
        drain(app)
        assert shop.wait().interaction_id == f"{run.id}:1~2"
        app.executions.complete(shop.wait().token, Approval(False))
        drain(app)
        assert run.result(0) == "refused, booked"


def test_a_step_that_recovers_rejects_what_was_not_answered(app: Windlass):
    """P5.1, P8.2: the execution succeeds with None."""
    orders = app.pipeline("orders")

    @orders.await_external(timeout=HOUR, recover_on_failure=True)
    def ask(number: int) -> int:
        return number

    with private(app):
        run = orders.submit(7)
        drain(app)
        advance(HOUR + 1)
        drain(app)
        assert run.result(0) is None
        (reject,) = app.rejects.find()
        assert (reject.step_name, reject.error_class) == ("ask", "AwaitTimeoutError")


def test_answers_are_kept_while_an_execution_is_paused(app: Windlass):
    """P8.1: and it goes on with them when it is resumed."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        assert run.pause()
        assert run.status() is ExecutionStatus.PAUSED
        app.executions.complete(shop.wait().token, Approval(True))
        drain(app)
        assert run.status() is ExecutionStatus.PAUSED
        assert run.resume()
        drain(app)
        assert run.result(0) == "shipped"


def test_a_resumed_execution_waits_on(app: Windlass):
    """P8.1: a pause neither asks again nor moves the deadline."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        deadline = shop.wait().deadline
        run.pause()
        drain(app)
        run.resume()
        drain(app)
        assert (run.status(), len(shop.asked), shop.wait().deadline) == (WAITING, 1, deadline)
        assert app.executions.get(run.id).due_at is not None
        advance(HOUR + 1)
        drain(app)
        assert run.status() is ExecutionStatus.DLQ


def test_a_canceled_execution_takes_no_answer(app: Windlass):
    """P8.1: it is listed no more, and an answer is an error that says so."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        wait = shop.wait()
        assert run.cancel()
        assert app.executions.pending("orders").items == []
        with pytest.raises(ExecutionStateError, match="has ended"):
            app.executions.complete(wait.token, Approval(True))


def test_a_body_that_fails_is_tried_again_under_the_same_interaction(app: Windlass):
    """P8.1, P4.1: the interaction id is the effect key, the same for every attempt."""
    shop = Shop(app)
    shop.fails = True
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        assert (run.status(), app.executions.pending("orders").items) == (ExecutionStatus.WAIT_RETRY, [])
        shop.fails = False
        advance(10)
        drain(app)
        assert {interaction for interaction, _ in shop.asked} == {f"{run.id}:1"}
        app.executions.complete(shop.asked[0][1], Approval(True))  # that of the first attempt
        drain(app)
        assert run.result(0) == "shipped"


def test_a_wait_may_be_the_first_and_the_last_step(app: Windlass):
    """P8.1: without `answer` and a next step the answer may be anything."""
    one = app.pipeline("one")

    @one.await_external(timeout=HOUR)
    async def ask(number: int) -> int:
        return number

    with private(app):
        run = one.submit(7)
        drain(app)
        app.executions.complete(interaction_id=f"{run.id}:0", answer={"any": [1, None]})
        drain(app)
        assert run.result(0) == {"any": [1, None]}


def test_waits_of_other_tenants_are_not_found(app: Windlass):
    """P3.3, P8.1: neither listed nor answered by an id; a token is proof enough."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7}, tenant="acme", correlation_id="order-7")
        drain(app)
        assert app.executions.pending("orders").items == []
        (wait,) = app.executions.pending("orders", tenant="acme")
        for given in ({"interaction_id": wait.interaction_id}, {"correlation_id": "order-7"}):
            with pytest.raises(WaitNotFoundError, match="'default'"):
                app.executions.complete(**given, answer=Approval(True))
        app.executions.complete(wait.token, Approval(True))
        drain(app)
        assert run.result(0) == "shipped"


def test_a_correlation_id_that_several_waits_share_is_refused(app: Windlass):
    """P8.1: the error says what to pass instead."""
    shop = Shop(app)
    with private(app):
        for number in range(2):
            shop.orders.submit({"n": number}, correlation_id="both")
        drain(app)
        with pytest.raises(InvalidOptionError, match=r"is ambiguous.*interaction_id="):
            app.executions.complete(correlation_id="both", answer=Approval(True))


@pytest.mark.parametrize("given", [{}, {"token": "a", "interaction_id": "b"}, {"interaction_id": "order 7"}])
def test_an_answer_is_addressed_in_one_way(app: Windlass, given: dict[str, str]):
    """P8.1: by a token, an interaction id or a correlation id."""
    Shop(app)
    with pytest.raises(InvalidOptionError):
        app.executions.complete(**given, answer=Approval(True))


@pytest.mark.parametrize("name", ["0", "1~2", "1:5", "9"])
def test_an_answer_to_a_wait_that_does_not_exist_is_refused(app: Windlass, name: str):
    """P8.1: another step, round or item than those that wait."""
    shop = Shop(app)
    with private(app):
        run = shop.orders.submit({"n": 7})
        drain(app)
        with pytest.raises(WaitNotFoundError):
            app.executions.complete(interaction_id=f"{run.id}:{name}", answer=Approval(True))


def test_an_application_without_the_pipeline_cannot_answer(app: Windlass):
    """P8.1: answers are checked against a type, which it does not know."""
    shop = Shop(app)
    with private(app):
        shop.orders.submit({"n": 7})
        drain(app)
        wait = shop.wait()
        app._pipelines._declared.clear()
        assert app.executions.pending("orders").items[0].request == {"order": 7}
        with pytest.raises(ConfigurationError, match="is not declared"):
            app.executions.complete(wait.token, Approval(True))


async def test_the_async_twins_do_the_same(app: Windlass):
    """P8.1: list, answer one, answer many."""
    shop = Shop(app)
    with private(app):
        for number in range(3):
            await shop.orders.asubmit({"n": number})
        await adrain(app)
        first, *others = await app.executions.apending("orders")
        assert not (await app.executions.acomplete(first.token, Approval(True))).duplicate
        done = await app.executions.acomplete_many((one.token, Approval(True)) for one in (first, *others))
        assert [one.duplicate for one in done] == [True, False, False]
