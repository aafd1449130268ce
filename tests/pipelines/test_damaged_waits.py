"""Damaged rows of steps that wait outside: each stays alone with its damage."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.damage import HUGE, execute
from windlass import ExecutionStatus, InvalidOptionError, Pipeline, Windlass, WindlassError
from windlass.testing import advance, drain, isolated

HOUR = 3600
ANYWHERE = [("request", "no JSON"), ("step", 99), ("round", 99), ("path", "nonsense"), ("created_at", -HUGE)]
SQLITE = [("request", b"\xff"), ("step", "x"), ("deadline", "soon"), ("deadline", b"\xff"), ("created_at", "never")]
STATES = [("status", "BOGUS"), ("status", "")]


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def asking(app: Windlass) -> Pipeline:
    orders = app.pipeline("orders")

    @orders.await_external(timeout=HOUR, answer=int)
    def ask(number: int) -> int:
        return number

    return orders


def damaged(app: Windlass, column: str, value: Any) -> tuple[Any, Any]:
    """Return two executions that wait, the wait of the first one damaged."""
    orders = asking(app)
    first, second = orders.submit(1), orders.submit(2)
    drain(app)
    key = first.id.hex if app.url.startswith("postgres") else str(first.id)
    execute(app.url, f"UPDATE windlass_external_wait SET {column} = ? WHERE execution_id = ?", value, key)
    return first, second


@pytest.mark.parametrize(("column", "value"), [*ANYWHERE, *SQLITE, *STATES])
def test_a_damaged_wait_hides_no_other(app: Windlass, column: str, value: Any):
    """J7.9, P8.1: neither in the list of what waits, page by page, nor in that of executions; the other is answered."""
    if (column, value) in SQLITE and not app.url.startswith("sqlite"):
        pytest.skip("PostgreSQL does not keep such a value")
    first, second = damaged(app, column, value)
    assert str(second.id) in {str(wait.execution_id) for wait in app.executions.pending()}
    seen, cursor, limit = set[str](), None, 2 if (column, value) in SQLITE else 1
    for _ in range(3):
        page = app.executions.pending(limit=limit, cursor=cursor)
        seen |= {str(wait.execution_id) for wait in page}
        if (cursor := page.next_cursor) is None:
            break
    assert str(second.id) in seen
    assert len(app.executions.find()) == 2
    assert app.executions.get(first.id).status in ("WAITING_EXTERNAL", "WAIT_RETRY")
    app.executions.complete(interaction_id=f"{second.id}:0", answer=5)
    drain(app)
    assert second.result(0) == 5


def test_an_answer_to_a_wait_in_no_known_state_is_refused(app: Windlass):
    """J7.9, P8.1: by an error for users."""
    first, _ = damaged(app, "status", "BOGUS")
    with pytest.raises(WindlassError, match="nothing of tenant 'default' waits"):
        app.executions.complete(interaction_id=f"{first.id}:0", answer=5)


@pytest.mark.parametrize("status", ["BOGUS", ""])
def test_an_execution_whose_wait_is_in_no_known_state_fails_at_its_deadline(sqlite_url: str, status: str):
    """J7.9, P8.2: once; its claim does not look again and again."""
    app = Windlass(sqlite_url)
    with isolated(app, url=sqlite_url):
        first, second = damaged(app, "status", status)
        advance(HOUR + 1)
        drain(app)
        assert (first.status(), second.status()) == (ExecutionStatus.DLQ, ExecutionStatus.DLQ)
        letters = {
            str(letter.execution_id): letter.terminal_reason for letter in app.dead_letters.find(kind="execution")
        }
        assert letters == {str(first.id): "non_retryable", str(second.id): "await_timeout"}
    app.close()


@pytest.mark.parametrize("ordered", [False, True])
def test_an_item_whose_wait_has_another_deadline_ends_at_its_own(sqlite_url: str, ordered: bool):
    """J7.9, P8.2: the claim does not try to expire it again and again, and the item is not forgotten."""
    app = Windlass(sqlite_url)
    orders = app.pipeline("orders")

    @orders.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @orders.await_external(timeout=HOUR, answer=int, recover_on_failure=True, ordered=ordered)
    def ask(number: int) -> int:
        return number

    with isolated(app, url=sqlite_url):
        run = orders.submit(1)
        drain(app)
        execute(app.url, "UPDATE windlass_external_wait SET deadline = ?", HUGE)
        advance(HOUR + 1)
        drain(app)
        assert (run.status(), run.result(0)) == (ExecutionStatus.SUCCEEDED, [])
        (reject,) = app.rejects.find()
        assert reject.error_class == "AwaitTimeoutError"
    app.close()


@pytest.mark.parametrize("cursor", [f"orders {'9' * 19} {'0' * 36} 0  1", "", "orders", 7, "x" * 100_000])
def test_an_invalid_cursor_is_refused(app: Windlass, cursor: Any):
    """P8.1: by an error of bounded length that says where one comes from."""
    asking(app)
    with pytest.raises(InvalidOptionError, match="a cursor comes from the page before") as caught:
        app.executions.pending(cursor=cursor)
    assert len(str(caught.value)) < 500
