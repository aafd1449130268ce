"""`app.publications`: items from outside, lists with filters, and authorization."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.facts import one
from windlass import (
    HandoffConflictError,
    InvalidOptionError,
    NotAuthorizedError,
    PayloadTooLargeError,
    Pipeline,
    PublicationNotFoundError,
    Settings,
    Windlass,
)
from windlass.client import publications
from windlass.settings import PipelinesSettings
from windlass.testing import drain


@dataclass
class Invoice:
    number: int


class DenyAll:
    """Allows only the given actions."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()

    def may(self, principal: object, action: str, job: object) -> bool:
        return action in self.allowed


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url, settings=Settings(pipelines=PipelinesSettings(max_value_bytes=1_000)))
    application.migrate()
    yield application
    application.close()


def billing_of(app: Windlass, name: str = "billing", **options: object) -> Pipeline:
    billing = app.pipeline(name, version="1", subscribe="invoices", **options)  # type: ignore[arg-type]

    @billing.step
    def bill(invoice: Invoice) -> int:
        return invoice.number

    return billing


def test_an_item_from_outside_becomes_executions_once(app: Windlass, store_url: str):
    """P7.1, P7.2: of all subscribers; the same key again is a duplicate with the same executions."""
    billing_of(app)
    billing_of(app, "audit")
    first = app.publications.admit("invoices", {"number": 7}, key="i-7", tenant="acme", correlation_id="trace-1")
    again = app.publications.admit("invoices", {"number": 7}, key="i-7", tenant="acme")
    other = app.publications.admit("invoices", {"number": 7}, key="i-7")
    assert (first.duplicate, len(first.executions), first.waiting) == (False, 2, 0)
    assert (again.duplicate, set(again.executions)) == (True, set(first.executions))
    assert (other.duplicate, set(other.executions) & set(first.executions)) == (False, set())
    drain(app)
    assert [app.executions.handle(made, "acme").result() for made in first.executions] == [7, 7]
    assert app.executions.get(first.executions[0], "acme").correlation_id == "trace-1"
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE source_id IS NOT NULL") == 0


async def test_an_item_from_outside_is_admitted_by_callers_that_await(app: Windlass):
    """P7.1: the same verb; what waits and what was refused as well."""
    billing_of(app, tenants=["acme"])
    received = await app.publications.aadmit("invoices", {"number": 7}, key="i-7")
    assert (received.duplicate, received.executions, received.waiting) == (False, (), 1)
    again = await app.publications.aadmit("invoices", {"number": 7}, key="i-7")
    assert (again.duplicate, again.waiting) == (True, 0)
    (failing,) = await app.publications.alist(failing=True)
    assert (failing.subscriber, failing.source_id, failing.attempts) == ("billing", None, 1)
    assert await app.publications.aretry(publication="invoices") == 1
    assert [one.waiting for one in await app.publications.abacklog()] == [1]
    assert not await app.publications.apause("invoices", "nobody")
    assert not await app.publications.aresume("invoices", "nobody")


def test_a_key_with_another_payload_is_an_error_and_noted_as_rejected(app: Windlass):
    """P7.2: for an answer of 409."""
    billing_of(app)
    app.publications.admit("invoices", {"number": 7}, key="i-7")
    with pytest.raises(HandoffConflictError, match="'i-7' was handed over before with another payload"):
        app.publications.admit("invoices", {"number": 8}, key="i-7")
    (rejected,) = app.publications.list(status="rejected")
    assert (rejected.key, rejected.execution_id, rejected.due_at) == ("i-7", None, None)
    assert app.publications.retry() == 0


def test_refused_items_are_found_behind_many_rejected_ones(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """P7.2: `retry` reads a bounded number of rows, none of which is rejected."""
    monkeypatch.setattr(publications, "MOST_READ", 2)
    monkeypatch.setattr(publications, "WINDOW", 2)
    billing_of(app, tenants=["acme"])
    app.publications.admit("invoices", {"number": 7}, key="i-7")
    app.publications.admit("invoices", {"number": 7}, key="i-7", tenant="acme")
    for number in range(3):
        with pytest.raises(HandoffConflictError):
            app.publications.admit("invoices", {"number": 8 + number}, key="i-7", tenant="acme")
    assert app.publications.retry() == 1


def test_a_hand_off_that_does_not_fit_waits_with_its_reason(app: Windlass):
    """P7.2: a payload that a subscriber cannot read is in its backlog alone."""
    billing_of(app)
    received = app.publications.admit("invoices", {"total": "x"}, key="i-7")
    assert (received.waiting, received.executions) == (1, ())
    (failing,) = app.publications.list(failing=True)
    assert "number" in (failing.reason or "")


def test_an_invalid_hand_off_is_refused_before_anything_is_stored(app: Windlass, store_url: str):
    """P7.1: unknown publications, bad keys and tenants, and what is too large."""
    billing_of(app)
    with pytest.raises(PublicationNotFoundError, match=r"publication 'invoice'.*subscribed to are invoices"):
        app.publications.admit("invoice", {}, key="k")
    with pytest.raises(InvalidOptionError, match="key must not be empty"):
        app.publications.admit("invoices", {}, key=" ")
    with pytest.raises(InvalidOptionError, match="tenant must have at most 255"):
        app.publications.admit("invoices", {}, key="k", tenant="x" * 256)
    with pytest.raises(PayloadTooLargeError):
        app.publications.admit("invoices", {"number": "x" * 2_000}, key="k")
    assert one(store_url, "SELECT count(*) FROM windlass_handoff") == 0


def test_hand_offs_are_listed_page_by_page_and_by_filter(app: Windlass):
    """P7.3: latest first; a filter that is not known is an error."""
    billing_of(app)
    billing_of(app, "audit")
    for number in range(5):
        app.publications.admit("invoices", {"number": number}, key=f"i-{number}", tenant="acme")
    first = app.publications.list(subscriber="audit", limit=3)
    assert [one.key for one in first] == ["i-4", "i-3", "i-2"]
    rest = app.publications.list(subscriber="audit", limit=3, cursor=first.next_cursor)
    assert ([one.key for one in rest], rest.next_cursor) == (["i-1", "i-0"], None)
    assert len(app.publications.list(tenant="acme", publication="invoices", status="ADMITTED").items) == 10
    assert app.publications.list(tenant="other").items == []
    with pytest.raises(InvalidOptionError, match="status must be one of"):
        app.publications.list(status="lost")
    with pytest.raises(InvalidOptionError, match="no filter 'subscribr'; did you mean"):
        app.publications.list(subscribr="audit")  # type: ignore[call-arg]


def test_every_verb_is_checked_by_the_authorizer(store_url: str):
    """J6.5: with names of actions that others have, too."""
    authorizer = DenyAll()
    app = Windlass(store_url, authorizer=authorizer)
    app.migrate()
    billing_of(app)
    verbs = {
        "submit": lambda: app.publications.admit("invoices", {"number": 1}, key="k"),
        "publications": app.publications.backlog,
        "pause": lambda: app.publications.pause("invoices", "billing"),
        "resume": lambda: app.publications.resume("invoices", "billing"),
        "retry": app.publications.retry,
    }
    for verb in (*verbs.values(), app.publications.list):
        with pytest.raises(NotAuthorizedError):
            verb()
    for action, verb in verbs.items():
        authorizer.allowed = {action}
        verb()
    app.close()
