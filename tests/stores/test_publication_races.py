"""Publications beside other writers: the order of their locks, and hand-offs that are purged meanwhile."""

from tests.stores.recording import recorded
from windlass.domain.ended import Ended
from windlass.domain.execution import LogRow
from windlass.domain.identity import new_job_id
from windlass.domain.states import Move
from windlass.pipelines.cargo import Finished
from windlass.pipelines.follow_ups import follow_ups
from windlass.pipelines.subscribers import Subscribers
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.ending import end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import handoffs
from windlass.stores.plans.dead_letters import FIRST
from windlass.stores.plans.handoffs import Published
from windlass.testing.contract.publications import batch, billing, item

TARGET = "pipeline/shop@1#hash"


def test_subscriptions_are_locked_after_the_executions_of_parts(store: Database):
    """P7.1: else two flushes, of which each publishes and ends a part, could wait for each other."""
    outgoing = batch([item("a")], billing())
    cargo = Finished(LogRow("ended", 0, 1), outgoing=(outgoing,))
    publishes = Ended(new_job_id(), TARGET, "default", 2, Move.SUCCEED, cargo=cargo)
    part = Ended(new_job_id(), f"{TARGET}/items", "default", 2, Move.SUCCEED)
    steps: list[Step] = []
    subscribers = Subscribers(lambda: ())
    ended = [publishes, part]
    store.run(recorded(steps, lambda dialect: end(dialect, ended, follow_ups({"default"}, subscribers))))
    names = [step.name for step in steps]
    assert names.index("part_of_job") < names.index("subscriptions_to")


def test_a_key_whose_hand_off_is_purged_meanwhile_is_free_again(store: Database):
    """P7.2: between the insertion that finds it taken and the read of its holder."""
    store.run(handoffs.publish, [batch([item("a")], billing())])
    purges = [True]

    def publish(dialect: Dialect) -> Plan[Published]:
        plan = handoffs.publish(dialect, [batch([item("a", "2"), item("b")], billing())])
        step = next(plan)
        while True:
            found = yield step
            if step.name == "insert_handoffs" and purges:
                purges.pop()
                rows = yield Step("old_handoffs", {"id": FIRST[1], "older_than_us": -1}, literals={"window": 10})
                yield Step("purge_handoffs", {"ids": dialect.ids([rows[0][0]])})
            try:
                step = plan.send(found)
            except StopIteration as stop:
                return stop.value

    published = store.run(publish)
    assert purges == []
    assert (len(published.admitted), published.rejected) == (1, 1)
