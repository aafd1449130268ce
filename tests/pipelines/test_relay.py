"""The relay over hand-offs to subscribers outside of the database."""

import logging
import threading
from collections.abc import Iterator, Mapping

import pytest

from tests.support.facts import one, rows
from tests.support.http_receiver import Answer, Request, receiving
from tests.support.remote_handoffs import (
    RemoteStage,
    bodies,
    hand_off,
    statuses_of,
    stored,
    subscribe,
)
from tests.support.waiting import until
from windlass import Delivery, DoNotRetry, HttpTarget, Outlet, RetryAfter, Windlass
from windlass.domain.delivery_outcomes import AT_ONCE
from windlass.pipelines.outlets import FunctionOutlet
from windlass.pipelines.relay import MOST_ROWS, Relay

PATIENT = 90.0
KEYS = [f"invoice-{number}" for number in range(5)]


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url, allow=["tests"])
    application.migrate()
    yield application
    application.close()


def settled(url: str, subscriber: str, status: str = "ADMITTED") -> None:
    until(lambda: set(statuses_of(url, subscriber).values()) == {status}, f"all hand-offs to be {status}")


def test_hand_offs_are_posted_and_admitted(app: Windlass, store_url: str):
    """P7.1: each with its key; the payload goes when it is settled."""
    with receiving() as receiver:
        stage = RemoteStage(app, {"crm": HttpTarget(receiver.url, timeout=PATIENT)})
        hand_off(store_url, "crm", KEYS)
        with app.worker():
            settled(store_url, "crm")
            hand_off(store_url, "crm", ["later"])
            stage.wake()
            until(lambda: statuses_of(store_url, "crm").get("later") == "ADMITTED", "the hand-off after a commit")
        assert receiver.admitted == dict.fromkeys([*KEYS, "later"], 1)
        assert sorted(bodies(receiver.requests)) == sorted([*KEYS, "later"])
        assert {request.headers["Windlass-Correlation-Id"] for request in receiver.requests} == {
            f"c-{key}" for key in [*KEYS, "later"]
        }
    for row in stored(store_url, "crm").values():
        assert (row.attempts, row.payload, row.reason, row.has_due, row.is_settled) == (0, None, None, False, True)
        assert row.seen_key == row.key


def test_more_hand_offs_than_a_batch_are_all_delivered(app: Windlass, store_url: str):
    """P7.1."""
    got: list[str] = []
    RemoteStage(app, {"crm": FunctionOutlet(lambda delivery: got.append(delivery.idempotency_key))})
    keys = [f"k{number}" for number in range(2 * MOST_ROWS + 50)]
    hand_off(store_url, "crm", keys)
    with app.worker():
        settled(store_url, "crm")
    assert sorted(got) == sorted(keys)


def test_a_refused_hand_off_is_rejected_with_the_reason(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.1: 409 and other errors of the client, and `DoNotRetry`; its key may be used again. P7.2: one warning."""
    with receiving(lambda request: Answer(409)) as receiver:
        outlets: Mapping[str, Outlet] = {
            "crm": HttpTarget(receiver.url, timeout=PATIENT),
            "erp": FunctionOutlet(lambda delivery: refuse("password=hunter2 is wrong")),
        }
        RemoteStage(app, outlets)
        hand_off(store_url, "crm", KEYS)
        hand_off(store_url, "erp", ["a"])
        with app.worker():
            settled(store_url, "crm", "REJECTED")
            settled(store_url, "erp", "REJECTED")
        assert len(receiver.requests) == len(KEYS)
    for row in stored(store_url, "crm").values():
        assert (row.attempts, row.seen_key, row.has_due) == (1, None, False)
        assert row.payload is not None, "it may be handed over again"
        assert row.reason is not None
        assert row.reason.endswith("answered 409")
    assert "hunter2" not in str(stored(store_url, "erp"))
    warnings = [record for record in caplog.records if record.name == "windlass.publication"]
    assert len(warnings) == len(KEYS) + 1
    assert all("not retried" in record.getMessage() for record in warnings)
    assert "hunter2" not in caplog.text


def refuse(why: str) -> None:
    raise DoNotRetry(why)


def test_a_failed_hand_off_is_tried_again_with_the_same_key(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.1: after 503, a dropped connection and a redirect. P7.2: one warning for each failure."""
    answers = iter([Answer(503), Answer(drops=True), Answer(302, {"Location": "/elsewhere"}), Answer(201)])
    with receiving(lambda request: next(answers)) as receiver:
        RemoteStage(app, {"crm": HttpTarget(receiver.url, timeout=PATIENT)})
        (id_,) = hand_off(store_url, "crm", ["a"])
        with app.worker():
            settled(store_url, "crm")
        assert receiver.keys() == ["a"] * 4
        assert [request.headers["Windlass-Attempt"] for request in receiver.requests] == ["1", "2", "3", "4"]
    assert stored(store_url, "crm")["a"].attempts == 3
    failures = [record.getMessage() for record in caplog.records if record.name == "windlass.publication"]
    assert len(failures) == 3
    assert all(str(id_) in text and "invoices/crm" in text and "tried again in" in text for text in failures)
    assert "answered 503" in failures[0]
    assert "hunter2" not in caplog.text


def test_a_requested_wait_of_a_destination_is_kept(app: Windlass, store_url: str):
    """P7.1: `Retry-After` holds back the other hand-offs to it, too."""
    asked = threading.Event()

    def decide(request: Request) -> Answer:
        if not asked.is_set():
            asked.set()
            return Answer(429, {"Retry-After": "1800"})
        return Answer()

    with receiving(decide) as receiver:
        stage = RemoteStage(app, {"crm": HttpTarget(receiver.url, timeout=PATIENT)})
        hand_off(store_url, "crm", ["first"])
        with app.worker():
            until(lambda: stored(store_url, "crm")["first"].reason, "the failure to be stored")
            hand_off(store_url, "crm", ["second"])
            (relay,) = stage.relays
            rests = ticked(relay)
        assert len(receiver.requests) == 1
        assert 1700 < rests <= 1800
    waits = one(store_url, "SELECT due - created_at FROM windlass_handoff WHERE key = 'first'")
    assert waits > 1700 * 1_000_000


def ticked(relay: Relay) -> float:
    """How long a relay sleeps that was woken, once it has nothing to do any more."""
    relay.signals.ticked.arm()
    while True:
        relay.wake()
        pause = relay.signals.ticked.wait_sync(PATIENT)
        if pause is not None and pause > 60:
            return pause


def test_a_stalled_destination_holds_up_no_other(app: Windlass, store_url: str):
    """P7.1: it has threads of its own, and no more than sixteen."""
    release, entered = threading.Event(), threading.Semaphore(0)
    busy: list[str] = []

    def stall(delivery: Delivery) -> None:
        busy.append(delivery.idempotency_key)
        entered.release()
        release.wait(600)

    with receiving() as receiver:
        RemoteStage(app, {"dead": FunctionOutlet(stall), "crm": HttpTarget(receiver.url, timeout=PATIENT)})
        keys = [f"k{number}" for number in range(2 * MOST_ROWS)]
        hand_off(store_url, "dead", keys)
        try:
            with app.worker():
                for _ in range(AT_ONCE):
                    assert entered.acquire(timeout=PATIENT)
                hand_off(store_url, "crm", keys)
                settled(store_url, "crm")
                assert len(busy) == AT_ONCE
                assert set(statuses_of(store_url, "dead").values()) == {"WAITING"}
                release.set()
                settled(store_url, "dead")
        finally:
            release.set()
        assert len(receiver.admitted) == len(keys)
    assert sorted(busy) == sorted(keys)


class Sluggish:
    """Its first call does not end before the test does."""

    timeout = 0.3

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.release = threading.Event()

    def deliver(self, delivery: Delivery, /) -> None:
        self.calls.append(delivery.idempotency_key)
        if len(self.calls) == 1:
            self.release.wait(600)


def test_a_call_that_takes_too_long_counts_as_failed_and_keeps_its_place(app: Windlass, store_url: str):
    """P7.1: it is tried again, and its late end changes nothing."""
    outlet = Sluggish()
    RemoteStage(app, {"crm": outlet})
    hand_off(store_url, "crm", ["a"])
    try:
        with app.worker():
            settled(store_url, "crm")
    finally:
        outlet.release.set()
    assert outlet.calls == ["a", "a"]
    assert stored(store_url, "crm")["a"].attempts == 1


def test_an_answer_that_never_ends_does_not_keep_its_place(app: Windlass, store_url: str):
    """P7.1: no single read of it takes long, so that it is interrupted; sixteen of them would end all deliveries."""
    answers = iter([Answer(drips=True)])
    with receiving(lambda request: next(answers, Answer())) as receiver:
        stage = RemoteStage(app, {"crm": Dripping(receiver.url)})
        hand_off(store_url, "crm", ["a"])
        with app.worker():
            settled(store_url, "crm")
            (relay,) = stage.relays
            until(lambda: not relay._busy, "the thread to be free")
    assert receiver.keys() == ["a", "a"]
    assert stored(store_url, "crm")["a"].attempts == 1


class Dripping(HttpTarget):
    timeout = 0.5


def test_one_hand_off_that_always_fails_holds_up_no_other(app: Windlass, store_url: str):
    """P7.1."""
    with receiving(lambda request: Answer(500 if request.key == "bad" else 200)) as receiver:
        RemoteStage(app, {"crm": HttpTarget(receiver.url, timeout=PATIENT)})
        hand_off(store_url, "crm", ["bad", *KEYS])
        with app.worker():
            receiver.wait_admitted(len(KEYS))
            until(lambda: list(statuses_of(store_url, "crm").values()).count("ADMITTED") == len(KEYS), "the others")
            assert statuses_of(store_url, "crm")["bad"] == "WAITING"


def test_many_hand_offs_that_always_fail_hold_up_no_other(app: Windlass, store_url: str):
    """P7.1: those behind them are not tried only after a rest for each."""
    got: list[str] = []

    def deliver(delivery: Delivery) -> None:
        if delivery.idempotency_key.startswith("bad"):
            raise ValueError("not understood")
        got.append(delivery.idempotency_key)

    RemoteStage(app, {"crm": FunctionOutlet(deliver)})
    hand_off(store_url, "crm", [*(f"bad{number}" for number in range(2 * MOST_ROWS)), *KEYS])
    with app.worker():
        until(lambda: len(got) == len(KEYS), "the others")
    assert sorted(got) == KEYS


def test_a_paused_subscription_holds_its_hand_offs_back(app: Windlass, store_url: str):
    """P7.2: until it is resumed."""
    with receiving() as receiver:
        target = HttpTarget(receiver.url, timeout=PATIENT)
        stage = RemoteStage(app, {"crm": target, "erp": target})
        subscribe(store_url, "crm", paused=True)
        subscribe(store_url, "erp", paused=False)
        hand_off(store_url, "crm", KEYS)
        hand_off(store_url, "erp", ["other"])
        with app.worker():
            settled(store_url, "erp")
            assert receiver.keys() == ["other"]
            assert set(statuses_of(store_url, "crm").values()) == {"WAITING"}
            subscribe(store_url, "crm", paused=False)
            stage.wake()
            settled(store_url, "crm")


def test_a_relay_that_lost_its_lease_marks_nothing_until_it_has_it_again(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.1: it does not deliver a second time what it has delivered, or still delivers."""
    entered, release = threading.Event(), threading.Event()
    got: list[Delivery] = []

    def deliver(delivery: Delivery) -> None:
        got.append(delivery)
        if len(got) == 1:
            entered.set()
            assert release.wait(600)

    RemoteStage(app, {"crm": FunctionOutlet(deliver)})
    hand_off(store_url, "crm", ["a"])
    with caplog.at_level(logging.INFO, "windlass.duty"), app.worker():
        assert entered.wait(PATIENT)
        rows(store_url, "UPDATE windlass_lease SET fence = fence + 1 WHERE name = 'relay to invoices/crm'")
        release.set()
        settled(store_url, "crm")
    assert [(one.idempotency_key, one.attempt) for one in got] == [("a", 1)]
    assert stored(store_url, "crm")["a"].attempts == 0
    assert "another node has taken over the lease" in caplog.text


def test_a_relay_that_lost_its_lease_does_not_mark_what_others_have_tried(
    app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture
):
    """P7.1: their answer stands; the late one is dropped with a warning."""
    entered, release = threading.Event(), threading.Event()

    def deliver(delivery: Delivery) -> None:
        if delivery.idempotency_key == "b":
            return
        entered.set()
        assert release.wait(600)

    RemoteStage(app, {"crm": FunctionOutlet(deliver)})
    hand_off(store_url, "crm", ["a"])
    with app.worker():
        assert entered.wait(PATIENT)
        rows(store_url, "UPDATE windlass_lease SET fence = fence + 1 WHERE name = 'relay to invoices/crm'")
        rows(store_url, "UPDATE windlass_handoff SET attempts = 1, due = 9000000000000000 WHERE key = 'a'")
        release.set()
        hand_off(store_url, "crm", ["b"])
        until(lambda: statuses_of(store_url, "crm")["b"] == "ADMITTED", "the other hand-off")
    assert statuses_of(store_url, "crm")["a"] == "WAITING"
    assert "settled or tried by others meanwhile" in caplog.text


def test_a_function_may_request_a_wait(app: Windlass, store_url: str):
    """P7.1: `RetryAfter` means to an outlet what it means to a job."""
    calls: list[int] = []

    def deliver(delivery: Delivery) -> None:
        calls.append(delivery.attempt)
        if len(calls) == 1:
            raise RetryAfter(0.01, "busy")

    RemoteStage(app, {"crm": FunctionOutlet(deliver)})
    hand_off(store_url, "crm", ["a"])
    with app.worker():
        settled(store_url, "crm")
    assert calls == [1, 2]
