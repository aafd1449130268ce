"""`assert_enqueued`, `assert_not_enqueued` and `enqueued`."""

from datetime import timedelta
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.engine.apps import Shop
from tests.testing import kit_shop
from tests.testing.kit_shop import Payments, charge, fetch, greet
from windlass import JobStatus, Settings, Windlass
from windlass.errors import InvalidOptionError
from windlass.testing import advance, assert_enqueued, assert_not_enqueued, drain, enqueued, isolated

NAME = "tests.testing.kit_shop:charge"


@pytest.fixture(autouse=True)
def _isolated(shop: Windlass) -> None:
    pass


def test_a_job_was_enqueued_with_whatever_arguments():
    charge.enqueue(42)
    assert_enqueued(charge)
    assert_not_enqueued(greet)


def test_arguments_are_compared_as_the_function_gets_them():
    charge.enqueue(42)
    assert_enqueued(charge, 42)
    assert_enqueued(charge, invoice_id=42)
    assert_enqueued(charge, 42, "EUR")
    assert_enqueued(charge, ANY, currency="EUR")
    assert_not_enqueued(charge, 43)
    assert_not_enqueued(charge, 42, "CHF")


def test_the_job_that_fits_is_given():
    charge.using(delay=60, tags=["vip"]).enqueue(42)
    job = assert_enqueued(charge, 42)
    assert job.tags == ("vip",)
    assert job.due_at == job.created_at + timedelta(seconds=60)


def test_ended_jobs_are_found_too(shop: Windlass):
    charge.enqueue(42)
    fetch.enqueue("http://a")
    drain(shop)
    assert assert_enqueued(charge, 42).status is JobStatus.SUCCEEDED
    assert_enqueued(fetch, "http://a")


def test_a_queue_narrows_it_down():
    charge.using(queue="billing").enqueue(42)
    assert_enqueued(charge, 42, queue="billing")
    assert_not_enqueued(charge, 42, queue="default")


def test_a_count_is_exact():
    for _ in range(3):
        charge.enqueue(42)
    assert_enqueued(charge, 42, count=3)
    with pytest.raises(AssertionError, match=r"should have been enqueued 2 times, and was 3"):
        assert_enqueued(charge, 42, count=2)
    with pytest.raises(InvalidOptionError, match="assert_not_enqueued"):
        assert_enqueued(charge, 42, count=0)


def test_jobs_may_be_named_in_every_form():
    charge.enqueue(42)
    Payments.refund.enqueue(7)
    assert_enqueued(charge.bind(42))
    assert_not_enqueued(charge.bind(43))
    assert_enqueued(NAME, 42)
    assert_enqueued(Payments.refund, 7)
    with isolated(kit_shop.other) as other:
        other.bind(kit_shop.plain, 1).enqueue()
        assert_enqueued(kit_shop.plain, 1, app=other)
        assert_not_enqueued(kit_shop.plain, 2, app=other)
        assert_enqueued(charge, 42)  # a job knows its application


def test_a_wrong_expectation_is_an_error_of_the_test():
    with pytest.raises(TypeError, match="nvoice"):
        assert_enqueued(charge, nvoice=42)
    with pytest.raises(TypeError, match=r"missing a required argument.*ANY"):
        assert_enqueued(charge, currency="EUR")


def test_the_message_lists_what_was_enqueued_instead(shop: Windlass):
    with pytest.raises(
        AssertionError, match=r"^tests\.testing\.kit_shop:charge should have been .*; nothing was enqueued$"
    ):
        assert_enqueued(charge)
    charge.enqueue(41)
    greet.using(queue="mail").enqueue(name="Ada")
    drain(shop, queues=["mail"])
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(charge, 42, queue="billing")
    assert str(caught.value).splitlines() == [
        f"{NAME}(42) in queue 'billing' should have been enqueued; enqueued:",
        f"  {NAME}(41), queue 'default', PENDING",
        "  tests.testing.kit_shop:greet(name='Ada'), queue 'mail', SUCCEEDED",
    ]
    with pytest.raises(AssertionError) as caught:
        assert_not_enqueued(charge)
    assert str(caught.value).splitlines() == [
        f"{NAME} should not have been enqueued; enqueued:",
        f"  {NAME}(41), queue 'default', PENDING",
    ]


def test_a_long_list_is_cut(shop: Windlass):
    shop.enqueue_many([charge.bind(number) for number in range(25)])
    with pytest.raises(AssertionError, match=r"\(19\), .*\n  and 5 more$"):
        assert_enqueued(charge, 42)


def test_all_jobs_are_given_in_the_order_of_their_enqueueing(shop: Windlass):
    """Also those of several pages, and those that are over."""
    shop.enqueue_many([charge.bind(number) for number in range(1_100)])
    drain(shop)
    advance(60)
    greet.using(queue="mail").enqueue("Ada")
    assert [job.args[0] for job in enqueued(shop)] == [*range(1_100), "Ada"]
    assert [job.args for job in enqueued(shop, greet)] == [("Ada",)]
    assert [job.args for job in enqueued(queue="mail")] == [("Ada",)]
    assert enqueued(job=fetch) == []


def test_a_name_that_is_not_known_here_is_compared_as_it_was_stored(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = Shop(tmp_path)
    with monkeypatch.context() as there:
        there.syspath_prepend(tmp_path)
        writer, reader = (Windlass(sqlite_url, settings=Settings()) for _ in range(2))
        writer.job(module.load("def ship(order, fast=False): pass").ship).enqueue(7, fast=True)
        module.unload()
    assert_enqueued(f"{module.name}:ship", 7, fast=True, app=reader)
    assert_not_enqueued(f"{module.name}:ship", 7, True, app=reader)
    writer.close()
    reader.close()
