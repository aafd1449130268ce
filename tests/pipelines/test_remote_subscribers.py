"""Publications to subscribers outside of the database, from the success of an execution to its answer."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.support.http_receiver import Answer, receiving
from tests.support.waiting import until
from windlass import Delivery, ExecutionStatus, HandoffStatus, HttpTarget, InvalidOptionError, SqsTarget, Windlass
from windlass.testing import advance, drain, isolated

RUN = 90.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def invoices(app: Windlass, to: dict[str, Any], key: Callable[[dict[str, int]], Any] | None = None) -> Any:
    orders = app.pipeline("orders", version="1")

    @orders.expand
    def lines(number: int) -> Iterator[dict[str, int]]:
        for id_ in range(number):
            yield {"id": id_}

    orders.publish("invoices", key=key, to=to)
    return orders


def found(app: Windlass, status: HandoffStatus) -> list[Any]:
    return list(app.publications.list(status=status))


def test_every_item_goes_to_every_place_with_its_key_and_tenant(app: Windlass):
    """P7.1: the default key is the execution and the item."""
    got: list[Delivery] = []
    with receiving() as receiver:
        orders = invoices(app, {"crm": HttpTarget(receiver.url, timeout=RUN), "erp": got.append})
        with app.worker():
            run = orders.submit(3, tenant="acme", correlation_id="c-1")
            run.result(RUN)
            receiver.wait_admitted(3)
            until(lambda: len(got) == 3, "the function to get the items")
            until(lambda: not app.publications.list(status=HandoffStatus.WAITING).items, "all to be marked")
        assert set(receiver.admitted) == {f"{run.id}:{number}" for number in range(3)}
        assert sorted(request.body for request in receiver.requests) == [f'{{"id":{number}}}' for number in range(3)]
        assert {request.headers["Windlass-Tenant"] for request in receiver.requests} == {"acme"}
    assert {(one.kind, one.name, one.tenant, one.correlation_id) for one in got} == {
        ("handoff", "invoices", "acme", "c-1")
    }
    assert sorted(one.json()["id"] for one in got) == [0, 1, 2]
    settled = app.publications.list().items
    assert {(one.status, one.attempts, one.reason) for one in settled} == {(HandoffStatus.ADMITTED, 0, None)}


def test_permanently_refused_hand_offs_are_delivered_when_the_cause_is_fixed(app: Windlass):
    """P7.1: a wrong password loses nothing; each key once, and none that was handed over since."""
    status = 401
    with receiving(lambda request: Answer(status)) as receiver:
        orders = invoices(app, {"crm": HttpTarget(receiver.url, timeout=RUN)}, key=lambda item: f"k{item['id']}")
        with app.worker():
            for _ in range(2):  # the key of a refused one is free: both runs have rejected ones
                orders.submit(3).result(RUN)
                until(lambda: not found(app, HandoffStatus.WAITING), "all to be refused")
            assert len(found(app, HandoffStatus.REJECTED)) == 6
            status = 200
            orders.submit(1).result(RUN)
            until(lambda: found(app, HandoffStatus.ADMITTED), "one key to be handed over")
            assert app.publications.retry() == 0
            assert app.publications.retry(status="REJECTED", subscriber="erp") == 0
            assert app.publications.retry(status="REJECTED") == 2
            until(lambda: len(found(app, HandoffStatus.ADMITTED)) == 3, "the others")
            assert app.publications.retry(status="REJECTED") == 0
        assert receiver.admitted == {"k0": 1, "k1": 1, "k2": 1}
        assert sorted(request.body for request in receiver.requests[-2:]) == ['{"id":1}', '{"id":2}']
    (backlog,) = app.publications.backlog()
    assert backlog.waiting == 0
    with pytest.raises(InvalidOptionError, match="status must be WAITING or REJECTED, which may be tried again"):
        app.publications.retry(status="ADMITTED")


def test_an_unreachable_destination_neither_fails_the_source_nor_blocks_another(app: Windlass):
    """P7.1, P7.3: it has succeeded, and its failures are counted."""
    with receiving() as receiver, receiving(lambda request: Answer(503)) as dead:
        to = {"crm": HttpTarget(receiver.url, timeout=RUN), "dead": HttpTarget(dead.url, timeout=RUN)}
        orders = invoices(app, to, key=lambda item: item["id"])
        with app.worker():
            run = orders.submit(4)
            run.result(RUN)
            receiver.wait_admitted(4)

            def backlog() -> dict[str, Any]:
                return {one.subscriber: one for one in app.publications.backlog()}

            until(lambda: backlog()["crm"].waiting == 0, "the other to have everything")
            until(lambda: backlog()["dead"].failing, "the failures to be stored")
            found = backlog()
        assert run.status() is ExecutionStatus.SUCCEEDED
        assert receiver.admitted == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert (found["dead"].waiting, found["dead"].kind) == (4, "remote")
    assert found["dead"].last_hour.failed > 0
    assert (found["crm"].last_hour.admitted, found["crm"].last_hour.failed) == (4, 0)
    assert found["crm"].last_hour.latency_ms is not None


def test_a_paused_place_gets_its_items_when_it_is_resumed(app: Windlass):
    """P7.2."""
    with receiving() as receiver:
        orders = invoices(app, {"crm": HttpTarget(receiver.url, timeout=RUN)})
        with app.worker():
            assert app.publications.pause("invoices", "crm")
            orders.submit(2).result(RUN)
            (backlog,) = app.publications.backlog()
            assert (backlog.waiting, backlog.paused) == (2, True)
            assert receiver.requests == []
            assert app.publications.resume("invoices", "crm")
            receiver.wait_admitted(2)


def test_a_refused_item_is_rejected_and_its_key_may_be_used_again(app: Windlass):
    """P7.2: and a repeat of an admitted one is suppressed."""
    answers = iter([Answer(422), Answer(200)])
    with receiving(lambda request: next(answers)) as receiver:
        orders = invoices(app, {"crm": HttpTarget(receiver.url, timeout=RUN)}, key=lambda item: "same")
        with app.worker():
            for count, status in enumerate((HandoffStatus.REJECTED, HandoffStatus.ADMITTED), 1):
                orders.submit(1).result(RUN)
                receiver.wait_for(count)
                until(partial(found, app, status), f"it to be {status}")
            orders.submit(1).result(RUN)
            until(lambda: app.publications.backlog()[0].last_hour.suppressed, "the repeat to be counted")
        assert receiver.keys() == ["same", "same"]


@pytest.mark.parametrize("place", ["https://crm.example.com", HttpTarget, 7])
def test_an_invalid_destination_is_refused_where_it_is_declared(app: Windlass, place: Any):
    """P7.1."""
    orders = app.pipeline("orders", version="1")
    with pytest.raises(InvalidOptionError, match=r"to\['crm'\] must be an object with `deliver\(delivery\)`"):
        orders.publish("invoices", to={"crm": place})


def test_queues_are_places(app: Windlass):
    """P7.1: their URL is checked; nothing is opened before something is delivered."""
    orders = invoices(app, {"queue": SqsTarget("https://sqs.eu-central-1.amazonaws.com/1/orders")})
    assert orders.definition.publications[0].to["queue"].timeout > 0


def test_a_drained_application_delivers_what_is_due_once(app: Windlass, caplog: pytest.LogCaptureFixture):
    """P7.1: in tests, without a worker; what fails is tried again when it is due by the clock of the test."""
    got: list[Delivery] = []
    tried: list[Delivery] = []

    def unsteady(delivery: Delivery) -> None:
        tried.append(delivery)
        if len(tried) == 1:
            raise ConnectionError("away")
        got.append(delivery)

    orders = invoices(app, {"crm": unsteady})
    with isolated(app):
        orders.submit(2)
        drain(app)
        assert (len(tried), len(got)) == (2, 1)
        drain(app)
        assert len(tried) == 2
        advance(2)
        drain(app)
        assert sorted(one.json()["id"] for one in got) == [0, 1]
    assert caplog.text.count("away") == 1
