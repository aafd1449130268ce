"""`windlass publication`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import until
from windlass import Pipeline, Windlass

SHOP = """
from tests.cli.test_publication import declare
from windlass import Windlass

app = Windlass()
declare(app)
"""


def declare(app: Windlass) -> Pipeline:
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def invoices(count: int) -> Iterator[int]:
        return iter(range(count))

    shop.publish("invoices", key=lambda invoice: f"invoice-{invoice}")
    billing = app.pipeline("billing", version="1", subscribe="invoices", max_in_flight=100, tenants=["default"])

    @billing.step
    def bill(invoice: int) -> int:
        return invoice

    return shop


@pytest.fixture
def shop(desk) -> Pipeline:
    (Path.cwd() / "shop.py").write_text(SHOP)
    return declare(desk.app)


def test_subscriptions_are_listed_paused_and_resumed(desk, shop: Pipeline):
    """P7.3: for pipes, programs and people, with what waits and what was admitted."""
    with desk.app.worker():
        shop.submit(2).result(90)
    (line,) = desk.stdout("publication", "list").splitlines()
    assert line.split("\t")[:9] == ["invoices", "billing", "up to date", "0", "0", "0.0", "100", "2", "0"]
    assert "are paused" in desk.stdout("publication", "pause", "invoices", "billing")
    with desk.app.worker():
        shop.submit(4).result(90)
    (item,) = desk.read("publication", "list")["items"]
    assert (item["waiting"], item["paused"], item["last_hour"]["suppressed"]) == (2, True, 2)
    (pipeline, _) = desk.stdout("pipeline", "list").splitlines()
    assert pipeline.split("\t")[7] == "2 (0)"
    assert "backlog rises: throughput or admission pressure" in pipeline
    assert "windlass publication list" in desk.drawn("pipeline", "list", columns=200)
    assert "paused" in desk.drawn("publication", "list", columns=200)
    assert "resumed" in desk.stdout("publication", "resume", "invoices", "billing")
    with desk.app.worker():
        until(lambda: desk.app.publications.backlog()[0].waiting == 0, "the backlog to drain")
    assert desk.run("publication", "resume", "invoices", "nobody").exit_code == 1


def test_hand_offs_that_fail_are_listed_with_their_reason_and_tried_again(desk, shop: Pipeline):
    """P7.2, P7.3: neither dead letters nor rejects."""
    with desk.app.worker():
        shop.submit(1, tenant="other").result(90)
    (line,) = desk.stdout("publication", "list", "--failing").splitlines()
    assert line.split("\t")[:5] == ["invoices", "billing", "WAITING", "invoice-0", "other"]
    assert "accepts the tenants default" in line
    (item,) = desk.read("publication", "list", "--failing", "--subscriber", "billing")["items"]
    assert item["attempts"] >= 1
    assert desk.read("publication", "list", "--failing", "--subscriber", "nobody")["items"] == []
    assert "1 hand-off will be tried again now" in desk.stdout("publication", "retry", "--publication", "invoices")
    assert desk.read("publication", "retry", "--tenant", "nobody") == {"retried": 0}
    assert desk.read("publication", "retry", "--rejected") == {"retried": 0}
    assert desk.stdout("dlq", "list") == ""
    assert desk.stdout("reject", "list") == ""


def test_a_store_without_subscriptions_is_reported(desk):
    """P7.3."""
    result = desk.run("publication", "list")
    assert (result.exit_code, result.stdout, "there is no subscription" in result.stderr) == (0, "", True)
