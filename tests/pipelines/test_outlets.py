from uuid import UUID

import pytest

from windlass import Delivery, InvalidOptionError
from windlass.pipelines.outlets import DEFAULT_TIMEOUT, checked_outlet, timeout_of

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
def test_other_values_are_refused_by_the_name_of_the_option(value: object):
    with pytest.raises(InvalidOptionError, match=r"to\['crm'\] must be an object with `deliver\(delivery\)`"):
        checked_outlet(value, "to['crm']")


@pytest.mark.parametrize("timeout", [0, -1, True, "5", None])
def test_timeout_that_is_no_positive_number_is_the_default(timeout: object):
    outlet = Crm()
    outlet.timeout = timeout  # type: ignore[assignment]
    assert timeout_of(outlet) == DEFAULT_TIMEOUT
