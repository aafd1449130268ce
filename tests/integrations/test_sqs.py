import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from tests.support.http_receiver import free_port
from windlass import ConfigurationError, Delivery, DoNotRetry, InvalidOptionError, SqsTarget
from windlass.integrations import extras
from windlass.integrations.sqs import deduplication_id, message_attributes

pytestmark = pytest.mark.xdist_group("sqs")

DELIVERY = Delivery(
    id=UUID(int=7),
    kind="handoff",
    name="invoices",
    idempotency_key="invoice:7",
    tenant="acme",
    correlation_id="c-1",
    payload='{"id":7}',
    attempt=1,
)
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test-secret", "region_name": "eu-central-1"}


class Sqs:
    """A server of queues on loopback, and a client of the test's own."""

    def __init__(self, endpoint: str) -> None:
        self.options: dict[str, Any] = {"endpoint_url": endpoint, **KEYS}
        self.client = boto3.session.Session().client("sqs", **self.options)

    def queue(self, name: str, **attributes: str) -> str:
        return str(self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def received(self, url: str) -> list[dict[str, Any]]:
        answer = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        return list(answer.get("Messages", []))


@pytest.fixture(scope="module")
def sqs() -> Iterator[Sqs]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield Sqs(f"http://{host}:{port}")
    finally:
        server.stop()


def test_a_delivery_is_one_message_with_its_key_tenant_and_correlation_id(sqs: Sqs):
    """P7.1."""
    url = sqs.queue("plain")
    SqsTarget(url, **sqs.options).deliver(DELIVERY)
    (message,) = sqs.received(url)
    assert json.loads(message["Body"]) == {"id": 7}
    got = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert got == {
        "IdempotencyKey": "invoice:7",
        "Tenant": "acme",
        "CorrelationId": "c-1",
        "Kind": "handoff",
        "Name": "invoices",
        "Attempt": "1",
    }


def test_a_fifo_queue_keeps_one_message_of_a_repeated_delivery(sqs: Sqs):
    """P7.1."""
    url = sqs.queue("orders.fifo", FifoQueue="true")
    target = SqsTarget(url, **sqs.options)
    target.deliver(DELIVERY)
    target.deliver(replace(DELIVERY, attempt=2))
    target.deliver(replace(DELIVERY, tenant="globex"))
    got = [message["MessageAttributes"]["Tenant"]["StringValue"] for message in sqs.received(url)]
    assert sorted(got) == ["acme", "globex"]


def test_deduplication_ids_differ_by_kind_name_tenant_and_key():
    """P7.1."""
    others = [{"kind": "reject"}, {"name": "bills"}, {"tenant": "globex"}, {"idempotency_key": "8"}]
    ids = {deduplication_id(DELIVERY), *(deduplication_id(replace(DELIVERY, **one)) for one in others)}  # type: ignore[arg-type]
    assert len(ids) == 5
    assert "CorrelationId" not in message_attributes(replace(DELIVERY, correlation_id=None))


def test_an_unknown_queue_and_a_closed_port_are_tried_later(sqs: Sqs):
    """P7.1: neither the endpoint nor a secret is in the error."""
    unknown = sqs.queue("plain").replace("plain", "missing")
    closed = {**sqs.options, "endpoint_url": f"http://127.0.0.1:{free_port()}"}
    for target in (SqsTarget(unknown, **sqs.options), SqsTarget(unknown, **closed)):
        with pytest.raises(ConnectionError, match=r"queue missing did not take the message: \w+") as failed:
            target.deliver(DELIVERY)
        assert "127.0.0.1" not in str(failed.value)
        assert failed.value.__suppress_context__


def test_a_message_that_the_queue_refuses_is_refused_permanently(sqs: Sqs):
    """P7.1: it is too large, for example."""
    target = SqsTarget(sqs.queue("plain"), **sqs.options)
    with pytest.raises(DoNotRetry, match="queue plain refused the message: InvalidParameterValue"):
        target.deliver(replace(DELIVERY, payload='"' + "x" * 3_000_000 + '"'))


def test_a_client_that_could_not_be_made_is_made_later_with_the_same_options(sqs: Sqs, monkeypatch: pytest.MonkeyPatch):
    """P7.1: they were lost with the first try, e.g. that of a proxy or of a region which is not in the environment."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    options = {name: value for name, value in sqs.options.items() if name != "region_name"}
    target = SqsTarget(sqs.queue("plain"), config=Config(user_agent_extra="shop"), **options)
    with pytest.raises(ConnectionError, match="NoRegionError"):
        target.deliver(DELIVERY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    target.deliver(DELIVERY)
    assert target._client.meta.config.user_agent_extra == "shop"


def test_no_secret_of_a_target_is_in_its_repr(sqs: Sqs):
    """P7.1."""
    assert repr(SqsTarget("https://sqs.eu-central-1.amazonaws.com/1/orders", **sqs.options)) == "SqsTarget('orders')"


@pytest.mark.parametrize("url", ["", "orders", "https://sqs.example.com", None, 7])
def test_an_invalid_queue_url_is_refused(url: Any):
    with pytest.raises(InvalidOptionError, match="SqsTarget: queue_url must be the URL of a queue"):
        SqsTarget(url)


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"boto3, which is not installed: pip install 'windlass-jobs\[sqs\]'"):
        SqsTarget("https://sqs.eu-central-1.amazonaws.com/1/orders")
