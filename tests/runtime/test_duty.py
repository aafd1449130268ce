"""Duties that a cluster does once, over real leases in real stores."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from tests.runtime.sample_services import FAST, OverlapCheck
from tests.support.duties import all_look, store_of
from windlass.domain.clock import VirtualClock
from windlass.domain.rhythm import Every, Rhythm
from windlass.runtime.duty import Duty
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import cluster, leases

INTERVAL = 10.0
LEASE = 15.0
DUTY = "counting"


def write(dialect: Dialect, name: str) -> Plan[None]:
    """Something that shows in the store."""
    del dialect
    yield Step("insert_queue", rows=[{"name": name}])


class Counting(Duty):
    """Writes one row a batch, `batches` of them a pass."""

    def __init__(self, cluster: "Cluster", node: str, batches: int, rhythm: Rhythm) -> None:
        self.node = node
        self.holder = LeaseHolder(cluster.database, DUTY, lambda: node, LEASE, rhythm)
        super().__init__(f"counting on {node}", self.holder, FAST)
        self.cluster = cluster
        self.left = self.batches = batches
        self.passes = 0
        self.before_batch: Callable[[], object] = lambda: None

    def begin(self) -> None:
        self.left = self.batches
        self.passes += 1

    def hold(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Have every batch say that it began, and wait before it writes."""
        inside, go_on = asyncio.Event(), asyncio.Event()

        def wait() -> asyncio.Event:
            inside.set()
            return go_on

        self.before_batch = wait
        return inside, go_on

    async def batch(self) -> bool:
        with self.cluster.check:
            answer = self.before_batch()
            if isinstance(answer, asyncio.Event):
                await answer.wait()
            await self.holder.run(write, f"{self.node}:{self.passes}:{self.left}")
            self.left -= 1
            return self.left > 0


class Cluster:
    """Nodes on one store."""

    def __init__(self, database: Database, clock: VirtualClock, duties: "list[Counting]") -> None:
        self.database = database
        self.clock = clock
        self.check = OverlapCheck()
        self.duties = duties

    def add(self, node: str, batches: int = 3, interval: float = INTERVAL) -> Counting:
        self.database.run(cluster.register, cluster.NodeRow(node, "host", 1, "0", None), 1_000_000_000_000)
        duty = Counting(self, node, batches, Every(interval))
        duty.signals.ticked.arm()
        self.duties.append(duty)
        return duty

    def written(self) -> set[str]:
        return {name for name, *_ in self.database.read(_queues)}

    def seen(self) -> leases.Seen | None:
        return self.database.read(leases.read, DUTY)

    def passed_at(self) -> int | None:
        seen = self.seen()
        return None if seen is None else seen.passed_at

    async def until(self, condition: Callable[[], bool]) -> None:
        """Duties look again and again; the clock stands still unless the test moves it."""
        async with asyncio.timeout(90):
            while not condition():
                for duty in self.duties:
                    duty.wake()
                await asyncio.sleep(0.01)


def _queues(dialect: Dialect) -> Plan[list]:
    del dialect
    return (yield Step("list_queues", alone=True))


@pytest.fixture
async def nodes(store_url: str) -> AsyncIterator[Cluster]:
    clock, duties = VirtualClock(), list[Counting]()
    async with store_of(store_url, clock, duties) as database:
        yield Cluster(database, clock, duties)


async def test_a_cluster_does_a_duty_once_an_interval_on_any_node(nodes: Cluster):
    """J7.5: at most one node at a time, and the others count its pass as theirs."""
    for name in ("a", "b", "c"):
        nodes.add(name).start()
    for passes in range(1, 5):
        await nodes.until(lambda: nodes.passed_at() == nodes.clock.micros())
        for _ in range(3):
            await all_look(nodes.duties)
        assert sum(duty.passes for duty in nodes.duties) == passes
        assert nodes.check.ticks == 3 * passes
        nodes.clock.advance(INTERVAL)
    assert not nodes.check.overlapped


async def test_a_duty_that_a_draining_node_interrupts_is_finished_by_another(nodes: Cluster):
    """J7.5, J7.6: the batch at hand is finished, the lease given back, the duty still due."""
    leaving, staying = nodes.add("leaving", batches=1000), nodes.add("staying")
    inside, go_on = leaving.hold()
    leaving.start()
    await asyncio.wait_for(inside.wait(), 90)
    staying.start()
    for _ in range(3):
        await staying.signals.ticked.wait()
        staying.wake()
    assert staying.passes == 0, "it was at work at the same time"
    stopping = asyncio.create_task(leaving.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping
    assert leaving.left == 999
    await nodes.until(lambda: nodes.passed_at() is not None)
    assert staying.passes == 1
    assert {"leaving:1:1000", "staying:1:3", "staying:1:2", "staying:1:1"} == nodes.written()


async def test_a_holder_that_hung_past_its_lease_changes_nothing(nodes: Cluster, caplog: pytest.LogCaptureFixture):
    """J7.5, J7.3: another node took over; the late batch is refused, and the pass is the other's."""
    caplog.set_level(logging.INFO, "windlass.duty")
    stalled, saviour = nodes.add("stalled"), nodes.add("saviour")
    inside, go_on = stalled.hold()
    stalled.start()
    await asyncio.wait_for(inside.wait(), 90)
    nodes.clock.advance(LEASE + 1)
    saviour.start()
    await nodes.until(lambda: nodes.passed_at() is not None)
    passed = nodes.seen()
    go_on.set()
    await nodes.until(lambda: "another node has taken over" in caplog.text)
    assert nodes.written() == {"saviour:1:3", "saviour:1:2", "saviour:1:1"}
    assert nodes.seen() == passed


async def test_an_error_releases_the_lease_and_the_duty_runs_again(nodes: Cluster):
    """J7.5: through the guard, as with every service; another node may be the one that tries."""
    failing, other = nodes.add("failing"), nodes.add("other")
    failing.signals.failed.arm()

    def fail() -> None:
        raise ZeroDivisionError

    failing.before_batch = fail
    failing.start()
    assert isinstance(await failing.signals.failed.wait(), ZeroDivisionError)
    await failing.stop()
    other.start()
    await nodes.until(lambda: nodes.passed_at() is not None)
    assert (failing.passes > 0, other.passes) == (True, 1)
    assert nodes.written() == {"other:1:3", "other:1:2", "other:1:1"}
