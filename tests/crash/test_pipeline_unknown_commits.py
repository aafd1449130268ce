"""Crash matrix of executions, C8: the connection breaks while COMMIT is under way."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from tests.crash.programs.application import make_app
from tests.support.facts import one, rows
from tests.support.pipeline_invariants import check_executions
from tests.support.tcp_proxy import TcpProxy
from windlass import NodeSettings, Settings, Windlass

QUICK = Settings(node=NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3, recovery_interval=0.2))
CUTS = pytest.mark.parametrize("arrives", [True, False], ids=["committed", "never arrived"])
RUN = 90.0
LINES = 35


@pytest.fixture
def app(proxy: TcpProxy) -> Iterator[Windlass]:
    """An application whose every connection goes through the proxy."""
    application = make_app(proxy.url, settings=QUICK)
    application.migrate()
    yield application
    application.close()


def cut(proxy: TcpProxy, mark: bytes, times: int, *, arrives: bool) -> None:
    """Cut the commits of transactions that contain a mark."""
    (proxy.cut_after if arrives else proxy.cut_before)(mark, times, final=b"COMMIT")


@CUTS
def test_a_step_whose_commit_was_cut_off_is_written_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool, caplog: pytest.LogCaptureFixture
):
    """P9.C8, P2.4: the mark of the write shows whether it was committed; no step is called again."""
    steps = app.pipeline("steps", version="1")
    called: Counter[str] = Counter()

    @steps.step
    async def first(number: int) -> int:
        called["first"] += 1
        return number + 1

    @steps.step
    async def second(number: int) -> int:
        called["second"] += 1
        return number + 1

    @steps.step
    async def third(number: int) -> int:
        called["third"] += 1
        return number + 1

    run = steps.submit(0)
    cut(proxy, b"UPDATE windlass_execution SET row_version", 3, arrives=arrives)
    with app.worker():
        assert run.result(RUN) == 3
    assert proxy.cuts == 3
    assert called == Counter(first=1, second=1, third=1)
    log = rows(pg_url, "SELECT kind FROM windlass_transition ORDER BY version")
    assert [kind for (kind,) in log] == ["submitted", "step", "step", "ended"]
    assert "came too late" not in caplog.text, "its own write was taken for somebody else's"
    check_executions(pg_url)


@CUTS
@pytest.mark.parametrize("on_a_thread", [True, False], ids=["thread", "loop"])
def test_a_chunk_whose_commit_was_cut_off_is_stored_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool, on_a_thread: bool
):
    """P9.C8, P2.3: no item is lost or doubled, and the generator runs once, on a thread and on the loop."""
    shop = app.pipeline("shop", version="1", buffer=10)
    called: Counter[object] = Counter()

    def lines(number: int) -> Iterator[int]:
        called["lines"] += 1
        yield from range(number)

    async def lines_on_the_loop(number: int) -> AsyncIterator[int]:
        called["lines"] += 1
        for line in range(number):
            yield line

    shop.expand(lines if on_a_thread else lines_on_the_loop)

    @shop.step
    async def price(line: int) -> int:
        called[line] += 1
        return line

    @shop.reduce
    def total(prices: Iterable[int]) -> list[int]:
        called["total"] += 1
        return list(prices)

    run = shop.submit(LINES)
    cut(proxy, b"INSERT INTO windlass_item", 2, arrives=arrives)
    with app.worker():
        assert run.result(RUN) == list(range(LINES))
    assert proxy.cuts == 2
    assert called == Counter(["lines", "total", *range(LINES)])
    assert one(pg_url, "SELECT count(*) FROM windlass_item") == LINES
    check_executions(pg_url)


@CUTS
def test_items_and_parts_whose_commits_were_cut_off_are_written_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool
):
    """P9.C8, P9.C2: of items, and of the end of a part with its successor; no item is called again."""
    shop = app.pipeline("shop", version="1", buffer=5, ordered=True)
    called: Counter[int] = Counter()

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    async def price(line: int) -> int:
        called[line] += 1
        return line

    run = shop.submit(LINES)
    cut(proxy, b"UPDATE windlass_item", 3, arrives=arrives)
    with app.worker():
        assert run.result(RUN) == list(range(LINES))
        assert proxy.cuts == 3
        again = shop.submit(LINES)
        cut(proxy, b"DELETE FROM windlass_part", 3, arrives=arrives)
        assert again.result(RUN) == list(range(LINES))
    assert proxy.cuts == 6
    assert called == Counter(dict.fromkeys(range(LINES), 2))
    check_executions(pg_url)


@CUTS
def test_a_publication_whose_commit_was_cut_off_is_handed_over_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool
):
    """P9.C8, P7.2: a chunk and the success; what was committed is not taken for a repeat of its keys."""
    shop = app.pipeline("shop", version="1", buffer=1_000)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    shop.publish("lines", key=lambda line: line)
    later = app.pipeline("later", version="1", subscribe="lines", queue="later")

    @later.step
    async def take(line: int) -> int:
        return line

    run = shop.submit(505)
    cut(proxy, b"INSERT INTO windlass_handoff (", 2, arrives=arrives)
    with app.worker(queues=["default"]):
        run.join(RUN)
    assert proxy.cuts == 2
    assert rows(pg_url, "SELECT count(*), count(DISTINCT execution_id) FROM windlass_handoff") == [(505, 505)]
    counted = rows(pg_url, "SELECT sum(admitted), sum(suppressed), sum(rejected) FROM windlass_handoff_count")
    assert [int(number) for number in counted[0]] == [505, 0, 0]
    check_executions(pg_url)
