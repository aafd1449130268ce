import asyncio
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from windlass import Delivery, InvalidOptionError
from windlass.pipelines.outlets import DEFAULT_TIMEOUT, checked_outlet, deliver_to, timeout_of

DELIVERY = Delivery(
    id=UUID(int=1),
    kind="handoff",
    name="invoices",
    idempotency_key="invoice:7",
    tenant="acme",
    correlation_id=None,
    payload="7",
    attempt=1,
)


class Crm:
    timeout = 5

    def __init__(self) -> None:
        self.got: list[Delivery] = []

    def deliver(self, delivery: Delivery, /) -> None:
        self.got.append(delivery)


def test_object_with_deliver_is_an_outlet():
    crm = Crm()
    assert checked_outlet(crm, "to['crm']") is crm
    assert timeout_of(crm) == 5


def test_function_becomes_an_outlet():
    got: list[Delivery] = []
    outlet = checked_outlet(got.append, "to['crm']")
    outlet.deliver(DELIVERY)
    assert got == [DELIVERY]
    assert timeout_of(outlet) == DEFAULT_TIMEOUT


@pytest.mark.parametrize("value", ["https://example.com", Crm, 7, None])
def test_an_invalid_outlet_is_refused_naming_the_option(value: object):
    with pytest.raises(InvalidOptionError, match=r"to\['crm'\] must be an object with `deliver\(delivery\)`"):
        checked_outlet(value, "to['crm']")


@pytest.mark.parametrize("timeout", [0, -1, True, "5", None])
def test_invalid_timeout_is_replaced_by_the_default(timeout: object):
    outlet = Crm()
    outlet.timeout = timeout  # type: ignore[assignment]
    assert timeout_of(outlet) == DEFAULT_TIMEOUT


async def to_crm(delivery: Delivery) -> None:
    raise AssertionError("nothing awaits it")


class AsyncCall:
    async def __call__(self, delivery: Delivery) -> None:
        await to_crm(delivery)


class AsyncCrm:
    async def deliver(self, delivery: Delivery, /) -> None:
        await to_crm(delivery)


@pytest.mark.parametrize("value", [to_crm, partial(to_crm), AsyncCall(), AsyncCrm()])
def test_an_async_function_is_refused_since_nothing_awaits_it(value: Any):
    """P7.1: a delivery would count as taken that was never made."""
    with pytest.raises(InvalidOptionError, match=r"to\['crm'\].* must not be async.*asyncio.run"):
        checked_outlet(value, "to['crm']")


def test_an_outlet_that_returns_a_coroutine_has_failed():
    """P7.1: it has done nothing yet."""
    hidden = checked_outlet(lambda delivery: to_crm(delivery), "to['crm']")  # noqa: PLW0108 - it hides that it is async
    for outlet in (hidden, AsyncCrm()):
        with pytest.raises(TypeError, match="returned coroutine instead of doing its work"):
            deliver_to(outlet, DELIVERY)  # type: ignore[arg-type] # what a type checker would find
    checked_outlet(lambda delivery: asyncio.run(asyncio.sleep(0)), "to['crm']").deliver(DELIVERY)
