"""docs/operate/runbook.md, section 2: a subscriber that is paused, and one that refuses."""

import logging
from collections.abc import Iterator

import pytest

from tests.operate.runbook import Runbook
from tests.operate.shop import MOST_BILLED, Bank, Shop, declare
from tests.support.waiting import until
from windlass import Delivery, DoNotRetry, Settings, Windlass

LIST = "windlass publication list"
FAILING = "windlass publication list --failing"
FAILING_HERE = "windlass publication list --failing --publication PUBLICATION --subscriber SUBSCRIBER"
PAUSE = "windlass publication pause PUBLICATION SUBSCRIBER"
RESUME = "windlass publication resume PUBLICATION SUBSCRIBER"
RETRY_SOME = "windlass publication retry --publication PUBLICATION --subscriber SUBSCRIBER --limit 10"
RETRY = "windlass publication retry --publication PUBLICATION --subscriber SUBSCRIBER"
RETRY_REJECTED = "windlass publication retry --rejected"
PIPELINES = "windlass pipeline list"
HERE = {"PUBLICATION": "invoices", "SUBSCRIBER": "billing"}


def sold(shop: Shop, first: int, count: int, cents: int = 100, tenant: str = "default") -> None:
    """Publish so many invoices."""
    order = {"first": first, "count": count, "cents": cents}
    with shop.app.worker():
        shop.pipelines["sales"].submit(order, tenant=tenant).result(timeout=90)


def state(runbook: Runbook) -> dict[str, str]:
    names = ("publication", "subscriber", "state", "backlog", "failing", "lag", "in flight", "admitted", "suppressed")
    (line,) = runbook.lines(LIST)
    return dict(zip((*names, "rejected", "failed", "hand-off"), line, strict=True))


def triage(runbook: Runbook) -> str:
    (row,) = [one for one in runbook.lines(PIPELINES) if one[0] == "billing"]
    return row[-1]


def billed(shop: Shop, tenant: str = "default") -> int:
    return len(shop.app.executions.find(tenant, pipeline="billing").items)


def test_a_backlog_behind_a_paused_subscriber_is_seen_and_drained(runbook: Runbook, shop: Shop):
    """P7.3, P10.2: the source has succeeded; no dead letter, no reject; a repeat is suppressed, and counted."""
    sold(shop, 0, 2)
    assert "are paused" in runbook.says(PAUSE, **HERE)
    sold(shop, 0, 5)
    found = state(runbook)
    assert (found["state"], found["backlog"], found["failing"], found["suppressed"]) == ("paused", "3", "0", "2")
    assert float(found["lag"]) >= 0
    assert float(found["hand-off"]) >= 0
    assert triage(runbook).startswith("publication backlog rises: throughput or admission pressure")
    for other in ("windlass dlq groups --kind execution --since 1h", "windlass reject groups --since 1h --by step"):
        assert runbook.lines(other) == []
    assert billed(shop) == 2
    assert "are resumed" in runbook.says(RESUME, **HERE)
    with shop.app.worker():
        until(lambda: state(runbook)["backlog"] == "0", "the backlog to drain")
    assert (state(runbook)["state"], billed(shop)) == ("up to date", 5)


def test_a_backlog_of_a_slow_subscriber_is_distinguished_from_a_failure(runbook: Runbook, shop: Shop):
    """P7.2, P10.2: nothing is failing; it drains as the downstream works."""
    assert shop.app.pause_queue("billing", create=True)
    sold(shop, 0, MOST_BILLED + 5)
    found = state(runbook)
    assert (found["state"], found["backlog"], found["failing"], found["in flight"]) == ("waiting", "5", "0", "10")
    assert triage(runbook).startswith("publication backlog rises")
    assert runbook.lines(FAILING) == []
    assert "is resumed" in runbook.says("windlass queue resume QUEUE", QUEUE="billing")
    with shop.app.worker():
        until(lambda: state(runbook)["backlog"] == "0", "the backlog to drain")
    assert billed(shop) == MOST_BILLED + 5


def test_refused_hand_offs_are_retried_once_the_cause_is_fixed(
    runbook: Runbook, shop: Shop, bank: Bank, caplog: pytest.LogCaptureFixture
):
    """P7.2, P7.3, P10.2: the reason and one warning for each try; a subscriber that accepts them gets them at once."""
    with caplog.at_level(logging.WARNING, "windlass.publication"):
        sold(shop, 0, 3, tenant="acme")
    refused = runbook.lines(FAILING)
    assert [(line[2], line[4]) for line in refused] == [("WAITING", "acme")] * 3
    assert all("tenant" in line[-1] for line in refused)
    warnings = [record.getMessage() for record in caplog.records if record.name == "windlass.publication"]
    assert len(warnings) == int(state(runbook)["failed"]) >= 3
    assert (state(runbook)["failing"], billed(shop, "acme")) == ("3", 0)

    deployed = Windlass(runbook.url, settings=Settings())
    declare(deployed, bank.place, tenants=None)
    assert len(runbook.lines(FAILING_HERE, **HERE)) == 3
    assert "3 hand-offs will be tried again now" in runbook.says(RETRY_SOME, **HERE)
    with deployed.worker():
        until(lambda: state(runbook)["backlog"] == "0", "the backlog to drain")
    deployed.close()
    assert billed(shop, "acme") == 3
    assert "0 hand-offs" in runbook.says(RETRY, **HERE)


def test_a_key_that_was_used_with_another_payload_is_rejected(runbook: Runbook, shop: Shop):
    """P7.2, P10.2: it is listed with its reason, and nothing tries it again."""
    sold(shop, 0, 1)
    sold(shop, 0, 1, cents=999)
    (line,) = runbook.lines(FAILING)
    assert line[2] == "REJECTED"
    assert "payload" in line[-1]
    assert (state(runbook)["rejected"], billed(shop)) == ("1", 1)
    assert "0 hand-offs will be tried again now" in runbook.says(RETRY, **HERE)


def test_refused_hand_offs_are_delivered_once_the_destination_accepts(runbook: Runbook):
    """P7.1, P10.2: a wrong password rejects hand-offs; their payload is kept, and none has to be published again."""
    password, got = "wrong", list[str]()

    def crm(delivery: Delivery) -> None:
        if password == "wrong":
            raise DoNotRetry("401 Unauthorized")
        got.append(delivery.idempotency_key)

    app = Windlass(runbook.url, settings=Settings())
    refunds = app.pipeline("refunds")

    @refunds.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    app.migrate()
    refunds.publish("refunds", key=lambda line: f"refund-{line}", to={"crm": crm})
    with app.worker():
        refunds.submit(2).result(timeout=90)
        until(lambda: [line[2] for line in runbook.lines(FAILING)] == ["REJECTED"] * 2, "both to be refused")
        assert all("401 Unauthorized" in line[-1] for line in runbook.lines(FAILING))
        password = "right"
        assert "2 hand-offs" in runbook.says(RETRY_REJECTED)
        until(lambda: sorted(got) == ["refund-0", "refund-1"], "both to be handed over")
    app.close()
