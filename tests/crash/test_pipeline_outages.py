"""Executions whose claims cannot read what they need: the connection breaks, time and again."""

from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.crash.programs.application import make_app
from tests.support.facts import one, rows
from tests.support.pipeline_invariants import check_executions
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass import NodeSettings, Settings, Windlass

QUICK = Settings(node=NodeSettings(heartbeat_interval=0.5, missed_heartbeats=60, recovery_interval=0.2))
"""No lease runs out while the store does not answer."""
RUN = 90.0
LINES = 35
CUTS = 4
READS = {
    "execution": b"t.version = e.value_version",
    "part": b"p.trying, p.job_id FROM windlass_part",
    "any part": b"SELECT segment FROM windlass_part",
    "items to run": b"last_hash, due, type, value FROM windlass_item",
    "items of the stage": b"SELECT path, type, value FROM windlass_item",
}


@pytest.fixture
def app(proxy: TcpProxy) -> Iterator[Windlass]:
    """An application whose every connection goes through the proxy."""
    application = make_app(proxy.url, settings=QUICK)
    application.migrate()
    yield application
    application.close()


def shop_of(app: Windlass, called: Counter[object], total: Callable[..., Any]) -> Any:
    """A pipeline whose steps may not fail."""
    shop = app.pipeline("shop", version="1", buffer=10, retry_limit=0)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        called["lines"] += 1
        yield from range(number)

    @shop.step
    async def price(line: int) -> int:
        called[line] += 1
        return line

    shop.reduce(total)
    return shop


@pytest.mark.parametrize("read", READS)
def test_reads_that_are_cut_off_fail_no_step(app: Windlass, proxy: TcpProxy, pg_url: str, read: str):
    """P9.C8, J7.8: a store that does not answer is waited for; it ends no execution, and no step is called again."""
    called: Counter[object] = Counter()

    def total(prices: Iterable[int]) -> list[int]:
        called["total"] += 1
        return list(prices)

    check(app, proxy, pg_url, READS[read], called, shop_of(app, called, total))


def test_an_async_stream_continues_after_its_reads_were_cut_off(app: Windlass, proxy: TcpProxy, pg_url: str):
    """P9.C8, J7.8: the same for a reduction that awaits its items."""
    called: Counter[object] = Counter()

    async def total(prices: AsyncIterable[int]) -> list[int]:
        called["total"] += 1
        return [price async for price in prices]

    check(app, proxy, pg_url, READS["items of the stage"], called, shop_of(app, called, total))


def check(app: Windlass, proxy: TcpProxy, pg_url: str, mark: bytes, called: Counter[object], shop: Any) -> None:
    run = shop.submit(LINES)
    proxy.cut_before(mark, CUTS)
    with app.worker():
        assert run.result(RUN) == list(range(LINES))
    assert proxy.cuts == CUTS
    assert called == Counter(["lines", "total", *range(LINES)])
    assert rows(pg_url, "SELECT DISTINCT attempt FROM windlass_transition") == [(1,)]
    check_executions(pg_url)


@pytest.mark.parametrize("on_a_thread", [True, False], ids=["thread", "loop"])
def test_a_worker_that_is_stopped_while_a_step_waits_for_its_reads_exits(
    app: Windlass, proxy: TcpProxy, pg_url: str, on_a_thread: bool
):
    """J7.6, J7.8: the wait ends with the drain, and another worker goes on."""
    called: Counter[object] = Counter()

    def total(prices: Iterable[int]) -> list[int]:
        called["total"] += 1
        return list(prices)

    async def total_on_the_loop(prices: AsyncIterable[int]) -> list[int]:
        called["total"] += 1
        return [price async for price in prices]

    run = shop_of(app, called, total if on_a_thread else total_on_the_loop).submit(LINES)
    proxy.cut_before(READS["items of the stage"], 1_000_000)
    with app.worker(drain_timeout=1):
        until(lambda: proxy.cuts > 2, "the step to wait", RUN)
    assert one(pg_url, "SELECT status FROM windlass_execution") == "OPEN"
    proxy.cut_before(b"", 0)
    with app.worker():
        assert run.result(RUN) == list(range(LINES))
    assert called["total"] == 2
    check_executions(pg_url)
