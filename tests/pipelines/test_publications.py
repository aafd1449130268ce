"""Publications: what is handed over with the success of an execution, to whom, and what is left in the backlog."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.facts import one, rows
from tests.support.pipeline_invariants import check_executions
from tests.support.waiting import until
from windlass import ConfigurationError, HttpTarget, InvalidOptionError, KeyPolicy, Pipeline, RejectItem, Windlass
from windlass.domain.publication import HandoffStatus
from windlass.node import Node

RUN = 90.0


@dataclass
class Invoice:
    number: int


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def shop_of(app: Windlass, **published: object) -> Pipeline:
    """A pipeline that publishes as many invoices as it is asked for."""
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def invoices(count: int) -> Iterator[Invoice]:
        return map(Invoice, range(count))

    shop.publish("invoices", **published)  # type: ignore[arg-type]
    return shop


def billing_of(app: Windlass, name: str = "billing", **options: object) -> Pipeline:
    """A pipeline that takes them."""
    billing = app.pipeline(name, version="1", subscribe="invoices", **options)  # type: ignore[arg-type]

    @billing.step
    def bill(invoice: Invoice) -> int:
        return invoice.number

    return billing


def handoffs(url: str, columns: str = "key, status") -> list[tuple[object, ...]]:
    return rows(url, f"SELECT {columns} FROM windlass_handoff ORDER BY subscriber, item, key")


def billed(url: str, status: str) -> int:
    """How many executions of billing are in a state."""
    where = f"pipeline = 'billing' AND status = '{status}'"
    return int(one(url, f"SELECT count(*) FROM windlass_execution WHERE {where}"))


def test_items_become_executions_of_all_subscribers_in_the_commit_of_the_success(app: Windlass, store_url: str):
    """P7.1: with key, tenant and correlation id; no row is left in any backlog."""
    shop = shop_of(app, key=lambda invoice: f"invoice-{invoice.number}")
    billing_of(app)
    billing_of(app, "audit")
    with app.worker():
        run = shop.submit(3, tenant="acme", correlation_id="trace-1")
        run.result(RUN)
        found = rows(store_url, "SELECT count(*) FROM windlass_handoff WHERE status = 'ADMITTED'")
        assert found == [(6,)]
        for pipeline in ("billing", "audit"):
            made = app.executions.find(tenant="acme", pipeline=pipeline).items
            assert sorted(one.key or "" for one in made) == ["invoice-0", "invoice-1", "invoice-2"]
            assert {one.correlation_id for one in made} == {"trace-1"}
            results = {app.executions.handle(one.id, "acme").result(RUN) for one in made}
            assert results == {0, 1, 2}
    check_executions(store_url)


def test_a_single_value_is_one_item_and_keys_are_made_of_execution_and_position(app: Windlass, store_url: str):
    """P7.2: the default key, of a single value and of the items of nested expansions."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def parse(number: int) -> Invoice:
        return Invoice(number)

    shop.publish("invoices")
    nested = app.pipeline("nested", version="1")

    @nested.expand
    def tens(count: int) -> Iterator[int]:
        return iter(range(count))

    @nested.expand
    def ones(ten: int) -> Iterator[Invoice]:
        return (Invoice(10 * ten + one) for one in range(2))

    nested.publish("invoices")
    billing_of(app)
    with app.worker():
        single, many = shop.submit(7), nested.submit(2)
        single.result(RUN)
        many.result(RUN)
    keys = {str(row[0]) for row in handoffs(store_url)}
    assert keys == {f"{single.id}:0", *(f"{many.id}:{path}" for path in ("0.0", "0.1", "1.0", "1.1"))}


def test_a_rejected_root_publishes_nothing(app: Windlass, store_url: str):
    """P5.1, P7.1: the execution SUCCEEDS with None."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def refuse(number: int) -> Invoice:
        raise RejectItem("no")

    shop.publish("invoices")
    billing_of(app)
    with app.worker():
        assert shop.submit(1).result(RUN) is None
    assert handoffs(store_url) == []


def test_many_items_are_handed_over_in_chunks_the_last_of_which_is_the_success(app: Windlass, store_url: str):
    """P7.1: with a row of the log for each chunk before the last."""
    shop = shop_of(app, key=lambda invoice: invoice.number)
    billing_of(app, queue="later")
    with app.worker(queues=["default"]):
        run = shop.submit(1_201)
        run.result(RUN)
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE status = 'ADMITTED'") == 1_201
    assert one(store_url, "SELECT count(DISTINCT execution_id) FROM windlass_handoff") == 1_201
    kinds = [entry.kind for entry in app.executions.history(run.id)]
    assert kinds.count("published") == 2
    assert kinds[-1] == "ended"
    check_executions(store_url)


@dataclass
class Scan:
    pixels: str


def test_large_items_are_handed_over_and_admitted_a_few_megabytes_at_a_time(app: Windlass, store_url: str):
    """P7.1: the memory of a worker does not grow with the size of items times 500."""
    scanner = app.pipeline("scanner", version="1")

    @scanner.expand(buffer=8)
    def scans(count: int) -> Iterator[Scan]:
        return (Scan("x" * 250_000) for _ in range(count))

    scanner.publish("scans")
    viewer = app.pipeline("viewer", version="1", subscribe="scans", queue="later")

    @viewer.step
    def view(scan: Scan) -> int:
        return len(scan.pixels)

    with app.worker(queues=["default"]):
        assert app.publications.pause("scans", "viewer")
        run = scanner.submit(50)
        assert run.join(RUN).value == "SUCCEEDED"
        assert [entry.kind for entry in app.executions.history(run.id)].count("published") == 1
        assert app.publications.resume("scans", "viewer")
        until(lambda: app.publications.backlog()[0].waiting == 0, "the backlog to drain", RUN)
    assert one(store_url, "SELECT count(*) FROM windlass_handoff_count WHERE folded = 0 AND drained = 50") == 0
    assert one(store_url, "SELECT count(DISTINCT execution_id) FROM windlass_handoff") == 50


def test_a_repeated_key_is_suppressed_and_another_payload_rejected(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.2: both are counted, the reject with its reason and a warning; the source has succeeded all the same."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def parse(number: int) -> Invoice:
        return Invoice(number % 10)

    shop.publish("invoices", key=lambda invoice: "always")
    billing_of(app)
    with caplog.at_level(logging.WARNING, "windlass.publication"), app.worker():
        for number in (1, 11, 2):
            shop.submit(number).result(RUN)
    assert sorted(str(row[1]) for row in handoffs(store_url)) == ["ADMITTED", "REJECTED"]
    (backlog,) = app.publications.backlog()
    assert (backlog.last_hour.admitted, backlog.last_hour.suppressed, backlog.last_hour.rejected) == (1, 1, 1)
    (rejected,) = app.publications.list(failing=True)
    assert (rejected.status, rejected.key) == (HandoffStatus.REJECTED, "always")
    assert "another payload" in (rejected.reason or "")
    assert len(caplog.records) == 1
    assert app.dead_letters.find().items == []
    assert app.rejects.find().items == []


def test_a_key_function_that_fails_rejects_the_item_and_no_other(app: Windlass, store_url: str):
    """P7.2: neither the execution nor a step fails for it."""

    def key(invoice: Invoice) -> str:
        if invoice.number == 1:
            raise ValueError("no key")
        return f"invoice-{invoice.number}"

    shop = shop_of(app, key=key)
    billing_of(app)
    with app.worker():
        shop.submit(3).result(RUN)
    (rejected,) = app.publications.list(failing=True)
    assert rejected.item == "1"
    assert "no key" in (rejected.reason or "")
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE status = 'ADMITTED'") == 2


def test_a_paused_subscriber_holds_up_no_other_and_drains_when_it_is_resumed(app: Windlass, store_url: str):
    """P7.2: its hand-offs wait with no failed try; those of the other are admitted at once."""
    shop = shop_of(app)
    billing_of(app)
    billing_of(app, "audit")
    with app.worker():
        assert app.publications.pause("invoices", "billing")
        shop.submit(700).result(RUN)
        waiting = {one.subscriber: one for one in app.publications.backlog()}
        assert (waiting["billing"].waiting, waiting["billing"].paused, waiting["audit"].waiting) == (700, True, 0)
        assert waiting["billing"].failing == 0
        assert app.publications.resume("invoices", "billing")
        until(lambda: app.publications.backlog()[1].waiting == 0, "the backlog to drain", RUN)
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE status = 'ADMITTED'") == 1_400
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE payload IS NOT NULL") == 0
    assert not app.publications.pause("invoices", "nobody")


def test_no_more_executions_are_open_than_a_subscriber_admits(app: Windlass, store_url: str):
    """P7.2: max_in_flight holds in the success transaction and in the backlog; all are admitted in the end."""
    shop = shop_of(app)
    most: list[int] = []
    billing = app.pipeline("billing", version="1", subscribe="invoices", max_in_flight=3)

    @billing.step
    def bill(invoice: Invoice) -> int:
        most.append(billed(store_url, "OPEN"))
        return invoice.number

    with app.worker():
        runs = [shop.submit(5) for _ in range(4)]
        for run in runs:
            run.result(RUN)
        until(lambda: billed(store_url, "SUCCEEDED") == 20, "all to be billed", RUN)
    assert max(most) <= 3
    assert one(store_url, "SELECT count(*) FROM windlass_handoff WHERE status = 'ADMITTED'") == 20


def test_an_item_stays_in_the_backlog_until_its_subscriber_accepts_it(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.2: a tenant that is not allowed; own attempts, reason and next try, one warning for each failed try."""
    shop = shop_of(app)
    billing_of(app, tenants=["acme"])
    with caplog.at_level(logging.WARNING, "windlass.publication"), app.worker():
        shop.submit(1, tenant="other").result(RUN)
        shop.submit(1, tenant="acme").result(RUN)
        (failing,) = app.publications.list(failing=True)
        assert (failing.status, failing.tenant, failing.attempts >= 1) == (HandoffStatus.WAITING, "other", True)
        assert "accepts the tenants acme" in (failing.reason or "")
        until(lambda: app.publications.list(failing=True).items[0].attempts >= 2, "another try", RUN)
    failed = [record for record in caplog.records if "other" in record.getMessage()]
    assert len(failed) == app.publications.list(failing=True).items[0].attempts
    assert app.publications.retry() == 1
    assert app.publications.retry(tenant="nobody") == 0


def test_a_pipeline_of_another_process_gets_its_items_from_there(store_url: str):
    """P7.1: what only the store knows waits for a node that has it."""
    source, sink = Windlass(store_url), Windlass(store_url)
    source.migrate()
    shop = shop_of(source)
    billing_of(sink)
    with sink.worker(queues=["other"]):  # it subscribes
        pass
    with source.worker():
        shop.submit(2).result(RUN)
        assert source.publications.backlog()[0].waiting == 2
    with sink.worker():
        until(lambda: len(sink.executions.find(pipeline="billing").items) == 2, "both to be admitted", RUN)
        for made in sink.executions.find(pipeline="billing"):
            assert sink.executions.handle(made.id).result(RUN) in (0, 1)
    source.close()
    sink.close()


def test_places_outside_get_rows_that_wait(app: Windlass, store_url: str):
    """P7.1: the relay delivers them; nothing here admits them."""
    target = HttpTarget("https://crm.example.com/")
    shop = shop_of(app, to={"crm": target})
    with app.worker():
        assert app.publications.pause("invoices", "crm")
        shop.submit(2).result(RUN)
    assert handoffs(store_url, "subscriber, status, attempts") == [("crm", "WAITING", 0)] * 2
    assert app.parts.pipelines is not None
    assert app.parts.pipelines.outlets() == {("invoices", "crm"): target}
    (backlog,) = app.publications.backlog()
    assert (backlog.kind, backlog.waiting) == ("remote", 2)


def test_types_of_a_subscriber_in_the_same_application_are_checked(app: Windlass):
    """P7.1: an item that it would refuse for certain is an error that names both pipelines and types."""
    shop_of(app)
    other = app.pipeline("other", version="1", subscribe="invoices")

    @other.step
    def shout(text: str) -> str:
        return text

    with pytest.raises(ConfigurationError, match=r"other@1 .* takes str, but in pipeline shop@1.*Invoice"):
        _ = other.definition


def test_an_invalid_publication_is_refused(app: Windlass):
    """P7.1: names, keys, targets, and options that need a subscription."""
    shop = shop_of(app)
    with pytest.raises(ConfigurationError, match="publishes 'invoices' already"):
        shop.publish("invoices")
    with pytest.raises(InvalidOptionError, match="must be 1 to"):
        shop.publish("in voices")
    with pytest.raises(InvalidOptionError, match="key must be a function"):
        shop.publish("other", key="id")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="to must be a mapping"):
        shop.publish("other", to=["crm"])  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="max_in_flight=3 needs a publication"):
        app.pipeline("late", version="1", max_in_flight=3)
    billing_of(app, "crm")
    shop.publish("more")
    _ = shop.definition
    with pytest.raises(ConfigurationError, match="before the pipeline is used"):
        shop.publish("late")


def test_the_keys_of_a_subscriber_follow_its_policy(app: Windlass, store_url: str):
    """P3.2, P7.2: the hand-off key is the key of the execution, also where one is required."""
    shop = shop_of(app, key=lambda invoice: f"invoice-{invoice.number}")
    billing = billing_of(app, key_policy=KeyPolicy.KEY_REQUIRED)
    with app.worker():
        before = billing.submit(Invoice(0), key="invoice-0")
        billing.submit(Invoice(9), key="invoice-1").result(RUN)
        before.result(RUN)
        shop.submit(3).result(RUN)
    found = {str(row[0]): (row[1], row[2]) for row in handoffs(store_url, "key, status, execution_id")}
    assert (found["invoice-0"][0], str(found["invoice-0"][1])) == ("ADMITTED", str(before.id))
    assert found["invoice-1"][0] == "WAITING"  # its key has another input there
    assert found["invoice-2"][0] == "ADMITTED"


async def test_a_node_whose_pipelines_neither_publish_nor_subscribe_has_no_duty_for_it(app: Windlass):
    """P7.1: a feature that is not used costs nothing; one that only publishes adds its counts up."""
    plain = app.pipeline("plain", version="1")

    @plain.step
    def same(number: int) -> int:
        return number

    assert await publication_duties(app) == []
    shop_of(app)
    assert await publication_duties(app) == ["publications", "purge of hand-offs"]


async def publication_duties(app: Windlass) -> list[str]:
    """The duties of publications that a node of an application has."""
    node = Node(await asyncio.to_thread(app.check_startable), 1, None)
    names = [duty.name for duty in node.membership.duties]
    return [name for name in names if name in ("publications", "purge of hand-offs")]
