"""Hand-off keys: what key functions return or do, and items that share a key or an execution."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.support.facts import rows
from tests.support.pipeline_invariants import check_executions
from windlass import KeyPolicy, Pipeline, Windlass
from windlass.domain.publication import HandoffStatus
from windlass.settings import JobsSettings, Settings

RUN = 90.0


@dataclass
class Invoice:
    number: int


class Text(str):
    """A key as an application may have it; its methods say something else."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another"


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def shop_of(app: Windlass, key: object) -> Pipeline:
    """A pipeline that publishes an invoice for each number."""
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def invoices(numbers: list[int]) -> Iterator[Invoice]:
        return map(Invoice, numbers)

    shop.publish("invoices", key=key)  # type: ignore[arg-type]
    return shop


def billing_of(app: Windlass, **options: object) -> Pipeline:
    billing = app.pipeline("billing", version="1", subscribe="invoices", **options)  # type: ignore[arg-type]

    @billing.step
    def bill(invoice: Invoice) -> int:
        return invoice.number

    return billing


def test_a_key_of_a_subclass_of_str_is_its_characters(app: Windlass, store_url: str):
    """P7.2: it is stored as a plain text; outcomes of other jobs of the node are written."""
    shop = shop_of(app, lambda invoice: Text("invoice-1"))
    billing_of(app)
    with app.worker():
        shop.submit([1]).result(RUN)
    assert rows(store_url, "SELECT key, status FROM windlass_handoff") == [("invoice-1", "ADMITTED")]


def test_items_that_are_one_execution_have_it_whichever_of_them_is_handed_over(app: Windlass, store_url: str):
    """P7.1, P7.2: one is rejected for its key, and the other is no less an execution."""
    keys = iter(["first", "first", "second"])
    shop = shop_of(app, lambda invoice: next(keys))
    billing_of(app, key_policy=KeyPolicy.SERVER_KEY)
    with app.worker():
        shop.submit([1]).result(RUN)
        shop.submit([2, 2]).result(RUN)  # of one input: its second item has a key that is free
        found = app.publications.list().items
        executions = {one.key: one.execution_id for one in found if one.status is HandoffStatus.ADMITTED}
        assert sorted(executions) == ["first", "second"]
        assert executions["second"] is not None
        assert app.executions.handle(executions["second"]).result(RUN) == 2
    check_executions(store_url)


def test_a_key_function_that_hangs_holds_up_neither_others_nor_the_end_of_the_worker(store_url: str):
    """P7.2: its items are rejected after the time limit of a step; its thread is none that the node needs."""
    settings = Settings(jobs=JobsSettings(timeout=timedelta(seconds=0.5)))
    app, ends = Windlass(store_url, settings=settings), threading.Event()
    app.migrate()

    def key(invoice: Invoice) -> str:
        ends.wait()
        return "late"

    shop = shop_of(app, key)
    billing_of(app)
    stopped = threading.Event()

    def work() -> None:
        with app.worker():
            for run in [shop.submit([1]) for _ in range(12)]:
                run.result(RUN)
        stopped.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    in_time = stopped.wait(2 * RUN)
    ends.set()
    thread.join()
    assert in_time, "the worker waits for the threads of key functions"
    found = rows(store_url, "SELECT status, reason FROM windlass_handoff")
    assert found == [("REJECTED", "the key function of publication 'invoices' ran longer than 0.5 s")] * 12
    app.close()
