"""The purge duty: its time, its batches, its lease. What is deleted is its plan's business."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from tests.support.duties import all_look, store_of
from tests.support.facts import one, rows
from windlass import purge_duty
from windlass.domain.clock import VirtualClock
from windlass.domain.cron import Cron
from windlass.domain.rhythm import AtTimes
from windlass.purge_duty import PurgeDuty
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import cluster
from windlass.stores.plans.dead_letters import FIRST, Purged

EVENING = datetime(2026, 11, 16, 20, tzinfo=UTC)
HOUR = 3600
AGE = 90 * 24 * HOUR


class Night:
    """A store, a clock, and nodes that purge at two."""

    def __init__(self, url: str, database: Database, clock: VirtualClock, duties: list[PurgeDuty]) -> None:
        self.url, self.database, self.clock = url, database, clock
        self.duties = duties

    def node(self, name: str) -> None:
        self.database.run(cluster.register, cluster.NodeRow(name, "host", 1, "0", None), 10**15)
        lease = LeaseHolder(self.database, "purge", lambda: name, 15, AtTimes(Cron.parse("0 2 * * *")))
        duty = PurgeDuty(lease, self.delete_tags, AGE, "tags", ErrorHandling())
        self.duties.append(duty)
        duty.start()

    def delete_tags(self, dialect: Dialect, older_than_us: int, limit: int, after: tuple[int, str]) -> Plan[Purged]:
        """Purge a table that is at hand: up to `limit` rows, and none in the first batch, as if all had to stay."""
        del dialect
        assert older_than_us == AGE * 1_000_000
        if after == FIRST:
            return Purged(0, (0, "t"))
        count = min(limit, self.left())
        few = f"SELECT tag FROM windlass_job_tag ORDER BY tag LIMIT {count}"
        yield Step(SCRIPT, {"text": f"DELETE FROM windlass_job_tag WHERE tag IN ({few})"})
        return Purged(count, (after[0] + 1, "t") if count == limit else None)

    def left(self) -> int:
        return int(one(self.url, "SELECT count(*) FROM windlass_job_tag"))

    def fill(self, count: int) -> None:
        job = "'00000000-0000-7000-8000-000000000000'"
        values = ", ".join(f"('t{n}', {job})" for n in range(count))
        rows(self.url, f"INSERT INTO windlass_job_tag (tag, job_id) VALUES {values}")


@pytest.fixture
async def night(store_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Night]:
    monkeypatch.setattr(purge_duty, "BATCH", 4)
    clock, duties = VirtualClock(EVENING), list[PurgeDuty]()
    async with store_of(store_url, clock, duties) as database:
        made = Night(store_url, database, clock, duties)
        made.fill(10)
        yield made


async def test_the_purge_waits_for_its_time_and_deletes_everything_in_batches(night: Night):
    """J5.6: at 02:00, not at the first start; one node of several, all of it."""
    for name in ("a", "b"):
        night.node(name)
    await all_look(night.duties)
    await all_look(night.duties)
    assert night.left() == 10
    night.clock.advance(6 * HOUR + 1)
    await all_look(night.duties)
    await all_look(night.duties)
    assert night.left() == 0
    assert one(night.url, "SELECT fence FROM windlass_lease WHERE name = 'purge'") == 2, "taken and given back once"


async def test_the_purge_runs_once_a_night_and_catches_up_on_a_missed_one(night: Night):
    """J5.6, J7.5: no node ran at 02:00; the first node to start does it, and not again before the next night."""
    night.node("a")
    await all_look(night.duties)
    await night.duties.pop().stop()
    night.clock.advance(30 * HOUR)
    night.node("b")
    await all_look(night.duties)
    await all_look(night.duties)
    assert night.left() == 0
    night.fill(3)
    night.clock.advance(HOUR / 2)
    await all_look(night.duties)
    assert night.left() == 3
    night.clock.advance(24 * HOUR)
    await all_look(night.duties)
    await all_look(night.duties)
    assert night.left() == 0
