"""A campaign: many executions of expand, price, reduce and publish, and a worker killed every second.

The invariants V1 to V8 judge, and beside them what the bodies, the subscriber and the place outside have written down.
"""

import random
import re
import threading
from collections import Counter

import pytest

from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.facts import one, rows
from tests.support.pipeline_crashing import PipelineStage
from tests.support.pipeline_invariants import broken_rules
from tests.support.programs import SHORT_LEASES, Program
from tests.support.waiting import until
from windlass.domain.clock import monotonic

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(400)]

LINES = 3 * BUFFER + 5
CREW = 3
SECONDS = 0.2
"""How long a line takes, so that workers hold something when they are killed."""
PATIENT = {**SHORT_LEASES, "WINDLASS_NODE__CRASH_BUDGET": "1000", "WINDLASS_NODE__SWEEP_INTERVAL": "3600"}
"""No execution is given up, and none is saved by the checks: what they would find is a violation here."""
OPEN = "SELECT count(*) FROM windlass_execution WHERE status = 'OPEN'"
UNSETTLED = "SELECT count(*) FROM windlass_handoff WHERE status <> 'ADMITTED'"
OUTBOX = "SELECT count(*) FROM windlass_outbox"
HANDED_OVER = "SELECT count(*) FROM (SELECT 1 FROM windlass_handoff LIMIT 1) h"
SALES = "SELECT id FROM windlass_execution WHERE pipeline = 'sales' AND status = 'SUCCEEDED'"
RESULTS = "SELECT d.result FROM windlass_execution e LEFT JOIN windlass_done d ON d.id = e.id"
BOOKED = """SELECT h.key, h.source_id, e.id, e.key, e.status, d.result FROM windlass_handoff h
    LEFT JOIN windlass_execution e ON e.id = h.execution_id LEFT JOIN windlass_done d ON d.id = e.id
    WHERE h.publication = 'totals' AND h.subscriber = 'books'"""
LOST = "SELECT job_id, count(*) FROM windlass_attempt WHERE outcome = 'lost' GROUP BY job_id"
TOTAL = str(sum(range(LINES)))
RUNNING_OF = "SELECT count(*) FROM windlass_hot WHERE status = 'RUNNING' AND node = '{}'"


def run_campaign(stage: PipelineStage, executions: int, kills: int, timeout: float, build: str = "") -> int:
    """Kill a worker that runs something every second, and wait for the end; returns how many were killed.

    The second half of the kills begins when the first executions have published.
    """
    chance = random.Random(executions)
    orders = [Order(f"o{n}", LINES, fails=n % 50, seconds=SECONDS) for n in range(executions)]
    stage.pipelines().named["sales"].submit_many(orders)
    environ = {**PATIENT, "TEST_BROKEN_BUILD": build}
    crew = [stage.start(environ=environ) for _ in range(CREW)]
    ends_at, pause, killed = monotonic() + timeout, threading.Event(), 0
    while killed < kills and one(stage.url, OPEN) and monotonic() < ends_at:
        pause.wait(1.0)
        working = [worker for worker in crew if is_working(stage, worker)]
        if working and (2 * killed < kills or one(stage.url, HANDED_OVER)):
            victim = chance.choice(working)
            victim.kill()
            crew[crew.index(victim)] = stage.start(environ=environ)
            killed += 1
    until(lambda: at_rest(stage), "all executions to end and all items to be delivered", max(90, ends_at - monotonic()))
    for worker in crew:
        assert worker.node
        worker.terminate()
        assert worker.exit_code() == 0
    return killed


def at_rest(stage: PipelineStage) -> bool:
    """Whether every execution has ended, and nothing waits to be handed over."""
    return one(stage.url, OPEN) == one(stage.url, UNSETTLED) == one(stage.url, OUTBOX) == 0


def is_working(stage: PipelineStage, worker: Program) -> bool:
    """Whether a worker is ready and runs something; one that still starts would die for nothing."""
    ready = re.search(r"^ready (\S+)$", worker.printed, re.MULTILINE)
    return ready is not None and one(stage.url, RUNNING_OF.format(ready[1])) > 0


def judge(stage: PipelineStage, executions: int) -> None:
    """All of them succeeded; every line was priced, more often only where an attempt was lost; sums are right."""
    stage.in_order()
    assert len(rows(stage.url, SALES)) == executions
    assert {value for (value,) in rows(stage.url, RESULTS)} == {TOTAL}
    assert one(stage.url, "SELECT count(*) FROM windlass_item WHERE status = 2") == executions * LINES
    called = stage.counts("price")
    assert called.keys() == {f"o{n}.{line}" for n in range(executions) for line in range(LINES)}
    lost = one(stage.url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'lost'")
    assert lost, "no worker held anything when it was killed"
    retries = sum(1 for n in range(executions) if n % 50 < LINES)
    at_a_time = 4
    assert sum(called.values()) <= executions * LINES + retries + at_a_time * lost
    judge_publications(stage, executions)


def judge_publications(stage: PipelineStage, executions: int) -> None:
    """Every sum is one execution of the subscriber and one entry outside, and no step ran again because of that."""
    sales = {str(sale) for (sale,) in rows(stage.url, SALES)}
    keys = sorted(f"{sale}:0" for sale in sales)
    booked = rows(stage.url, BOOKED)
    assert sorted(key for key, *_ in booked) == keys
    expected = [(f"{source}:0", source, admitted, key, "SUCCEEDED", TOTAL) for key, source, admitted, *_ in booked]
    assert booked == expected
    bookings = {str(admitted) for _, _, admitted, *_ in booked}
    assert len(bookings) == executions == one(stage.url, "SELECT count(*) FROM windlass_execution") - executions
    outside = "SELECT key FROM windlass_handoff WHERE publication = 'totals' AND subscriber = 'ledger'"
    assert sorted(key for (key,) in rows(stage.url, outside)) == keys
    entries = set(stage.programs.ran("ledger"))  # a killed relay delivers again what it had not marked
    assert sorted(entries) == [f"{key},{TOTAL}" for key in keys]
    lost = {str(job): count for job, count in rows(stage.url, LOST)}
    for called, known in ((Counter(stage.programs.ran("total")), sales), (stage.counts("book"), bookings)):
        assert called.keys() == known
        assert [job for job, times in called.items() if times > 1 + lost.get(job, 0)] == []
    repeated = stage.counts("lines").total() - executions
    assert 0 <= repeated <= sum(lost.values())


def test_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P9.C7, P2.3, P7.1: nothing is lost, doubled or left waiting, nor what they publish."""
    assert run_campaign(pipeline_stage, executions=40, kills=6, timeout=200) >= 2
    judge(pipeline_stage, 40)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P9.C7, P2.3, P7.1: the same for 500."""
    assert run_campaign(pipeline_stage, executions=500, kills=60, timeout=1500) >= 10
    judge(pipeline_stage, 500)


def test_a_build_that_ends_parts_before_their_items_is_found(pipeline_stage: PipelineStage):
    """P9.C2: executions succeed without their items."""
    run_campaign(pipeline_stage, executions=3, kills=0, timeout=90, build="parts end first")
    assert "V6 all items of an ended execution have ended" in broken_rules(pipeline_stage.url)
