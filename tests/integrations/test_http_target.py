import logging
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest

from tests.support.http_receiver import Answer, Receiver, free_port, receiving
from windlass import ConfigurationError, Delivery, DoNotRetry, HttpTarget, InvalidOptionError, RetryAfter
from windlass.domain.clock import monotonic
from windlass.domain.delivery_outcomes import LONGEST_ASKED
from windlass.integrations import extras
from windlass.integrations.http_target import delivery_headers, seconds_of

DELIVERY = Delivery(
    id=UUID(int=7),
    kind="handoff",
    name="invoices",
    idempotency_key="invoice:7",
    tenant="acme",
    correlation_id="c-1",
    payload='{"id":7}',
    attempt=2,
)
PATIENT = 90.0
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def raised(receiver: Receiver, answer: Answer, timeout: float = PATIENT) -> BaseException | None:
    receiver.decide = lambda request: answer
    try:
        HttpTarget(receiver.url, timeout=timeout).deliver(DELIVERY)
    except Exception as error:  # noqa: BLE001 - what it is, is the question
        return error
    return None


def test_a_delivery_is_one_post_with_its_key_tenant_and_correlation_id():
    """P7.1."""
    with receiving() as receiver:
        HttpTarget(receiver.url, headers={"Authorization": "Bearer s3cret"}, timeout=PATIENT).deliver(DELIVERY)
        (request,) = receiver.requests
    assert (request.path, request.body) == ("/hook?token=hunter2", '{"id":7}')
    sent = {name: request.headers[name] for name in delivery_headers(DELIVERY)}
    assert sent == {
        "Content-Type": "application/json",
        "Idempotency-Key": "invoice:7",
        "Windlass-Tenant": "acme",
        "Windlass-Correlation-Id": "c-1",
        "Windlass-Kind": "handoff",
        "Windlass-Name": "invoices",
        "Windlass-Attempt": "2",
    }
    assert request.headers["Authorization"] == "Bearer s3cret"


def test_keys_that_no_header_can_hold_are_encoded_each_its_own_way():
    """P7.1: two keys never become the same header."""
    keys = ["a b", "a%20b", "ä", "%C3%A4", "a\u2028b", "日本"]
    headers = [delivery_headers(replace(DELIVERY, idempotency_key=key))["Idempotency-Key"] for key in keys]
    assert len(set(headers)) == len(keys)
    assert all(header.isascii() and header.isprintable() and " " not in header for header in headers)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_every_2xx_takes_a_delivery(status: int):
    """P7.1."""
    with receiving() as receiver:
        assert raised(receiver, Answer(status, body=b"")) is None


@pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 422])
def test_client_errors_refuse_a_delivery_permanently(status: int):
    """P7.1."""
    with receiving() as receiver:
        error = raised(receiver, Answer(status))
        odd = raised(receiver, Answer(status, {"Retry-After": "soon"}))
    assert isinstance(odd, DoNotRetry)
    assert isinstance(error, DoNotRetry)
    assert str(error).endswith(f"answered {status}")


@pytest.mark.parametrize("status", [403, 409, 413])
def test_a_client_error_that_requests_a_wait_is_retried(status: int):
    """P7.1: 409, for example, while an earlier try with the same key is still under way."""
    with receiving() as receiver:
        asked = raised(receiver, Answer(status, {"Retry-After": "7"}))
    assert isinstance(asked, RetryAfter)
    assert asked.delay == timedelta(seconds=7)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_errors_that_may_go_away_are_tried_later(status: int):
    """P7.1: after `Retry-After` if the answer has it."""
    with receiving() as receiver:
        assert isinstance(raised(receiver, Answer(status)), ConnectionError)
        asked = raised(receiver, Answer(status, {"Retry-After": "7"}))
    assert isinstance(asked, RetryAfter)
    assert asked.delay == timedelta(seconds=7)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int):
    """P7.1."""
    with receiving() as receiver:
        error = raised(receiver, Answer(status, {"Location": receiver.url}))
        assert len(receiver.requests) == 1
    assert isinstance(error, ConnectionError)
    assert "a redirect, which is not followed" in str(error)


def test_a_dropped_connection_a_stall_and_a_closed_port_are_tried_later():
    """P7.1."""
    with receiving() as receiver:
        assert "gave no answer" in str(raised(receiver, Answer(drops=True)))
        assert "gave no answer: ReadTimeoutError" in str(raised(receiver, Answer(stalls=True), timeout=0.2))
    with pytest.raises(ConnectionError, match="gave no answer: NewConnectionError"):
        HttpTarget(f"http://127.0.0.1:{free_port()}/", timeout=PATIENT).deliver(DELIVERY)


def test_a_host_that_cannot_be_looked_up_is_tried_later_without_its_url():
    """P7.1."""
    for host in ("a..b", "x" * 70 + ".example", "\u0130.invalid"):
        with pytest.raises(ConnectionError, match="gave no answer") as failed:
            HttpTarget(f"http://{host}/hook?token=hunter2", timeout=PATIENT).deliver(DELIVERY)
        assert "hunter2" not in str(failed.value)


def test_a_connection_is_used_again_after_an_answer_with_a_body():
    """P7.1: also after a large one, of which only the beginning is read."""
    with receiving() as receiver:
        target = HttpTarget(receiver.url, timeout=PATIENT)
        for body in (b"{}", b"x" * 200_000, b"{}"):
            receiver.decide = lambda request, body=body: Answer(body=body)  # type: ignore[misc]
            target.deliver(DELIVERY)
        assert len(receiver.requests) == 3


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Length": "100"}, b"cut"),
        ({"Content-Encoding": "gzip"}, b"no gzip"),
        ({"Transfer-Encoding": "chunked"}, b"no chunk"),
    ],
)
def test_an_answer_whose_body_is_broken_or_does_not_end_counts_by_its_status(headers: dict[str, str], body: bytes):
    """P7.1: what was taken would be delivered again for ever."""
    with receiving() as receiver:
        began = monotonic()
        assert raised(receiver, Answer(200, headers, body=body)) is None
        assert isinstance(raised(receiver, Answer(410, headers, body=body)), DoNotRetry)
        assert monotonic() - began < PATIENT, "it does not wait for the rest"


def test_urllib3_logs_no_url_of_a_delivery(caplog: pytest.LogCaptureFixture):
    """P7.1: it may hold a secret; what others log through urllib3 stays."""
    with receiving() as receiver, caplog.at_level(logging.DEBUG):
        assert raised(receiver, Answer(headers={"X": "1\r\nno header\r\nY: 2"})) is None
        logging.getLogger("urllib3.connection").warning("another's")
    assert "hunter2" not in caplog.text
    assert "another's" in caplog.text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("999999999999999", LONGEST_ASKED),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        (format_datetime(NOW + timedelta(days=9), usegmt=True), LONGEST_ASKED),
        ("soon", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("\0", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_up_to_an_hour(text: str | None, seconds: float | None):
    """P7.1."""
    assert seconds_of(text, NOW) == seconds


def test_no_secret_of_a_target_is_in_its_repr_or_its_errors():
    """P7.1: neither the rest of its URL nor its headers."""
    with receiving() as receiver:
        errors = [raised(receiver, answer) for answer in (Answer(500), Answer(404), Answer(302), Answer(drops=True))]
        target = HttpTarget(receiver.url, headers={"Authorization": "s3cret"})
    closed = HttpTarget(f"http://127.0.0.1:{free_port()}/?token=hunter2", headers={"Authorization": "s3cret"})
    with pytest.raises(ConnectionError) as refused:
        closed.deliver(DELIVERY)
    shown = [repr(target), *map(repr, errors), repr(refused.value), repr(refused.value.__cause__)]
    assert refused.value.__suppress_context__
    assert not [text for text in shown if "hunter2" in text or "s3cret" in text or "hook" in text]


@pytest.mark.parametrize(
    "url", ["", "crm.example.com", "ftp://crm.example.com/", "https://", "https://a b/", "http://h:x/", 7, None]
)
def test_an_invalid_url_is_refused(url: Any):
    with pytest.raises(InvalidOptionError, match="HttpTarget: url must be"):
        HttpTarget(url)


def test_credentials_in_a_url_are_refused_without_being_shown():
    with pytest.raises(InvalidOptionError, match="pass them as a header") as refused:
        HttpTarget("https://me:hunter2@crm.example.com/")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "headers",
    [
        ["a"],
        {"a": 1},
        {"": "b"},
        {"a": "b\r\nc: d"},
        {"a": "ä"},
        {"Idempotency-Key": "7"},
        {"WINDLASS-TENANT": "x"},
        {"a b": "c"},
        {"a:b": "c"},
        {"Content-Length": "5"},
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_an_invalid_header_is_refused_without_its_value(headers: Any):
    with pytest.raises(InvalidOptionError, match="HttpTarget: headers must be a mapping") as refused:
        HttpTarget("https://crm.example.com/", headers=headers)
    assert "c: d" not in str(refused.value)


@pytest.mark.parametrize("timeout", [0, -1, 301, "5", True, None])
def test_an_invalid_timeout_is_refused(timeout: Any):
    with pytest.raises(InvalidOptionError, match="HttpTarget: timeout"):
        HttpTarget("https://crm.example.com/", timeout=timeout)


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigurationError, match=r"urllib3, which is not installed: pip install 'windlass-jobs\[http\]'"
    ):
        HttpTarget("https://crm.example.com/")


def test_a_delivery_can_be_pickled():
    assert pickle.loads(pickle.dumps(DELIVERY)) == DELIVERY
