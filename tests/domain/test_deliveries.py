from uuid import UUID

from windlass import Delivery


def test_payload_is_decoded_on_request():
    delivery = Delivery(
        id=UUID(int=1),
        kind="handoff",
        name="invoices",
        idempotency_key="invoice:7",
        tenant="acme",
        correlation_id=None,
        payload='{"id":7}',
        attempt=1,
    )
    assert delivery.json() == {"id": 7}
