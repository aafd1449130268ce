"""A campaign: many executions of expand, price and reduce, and a worker killed every second; the invariants judge."""

import random
import re
import threading

import pytest

from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.facts import one
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


RUNNING_OF = "SELECT count(*) FROM windlass_hot WHERE status = 'RUNNING' AND node = '{}'"


def run_campaign(stage: PipelineStage, executions: int, kills: int, timeout: float, build: str = "") -> int:
    """Kill a worker that runs something every second, and wait for the end; returns how many were killed."""
    chance = random.Random(executions)
    orders = [Order(f"o{n}", LINES, fails=n % 50, seconds=SECONDS) for n in range(executions)]
    stage.pipelines().named["orders"].submit_many(orders)
    environ = {**PATIENT, "TEST_BROKEN_BUILD": build}
    crew = [stage.start(environ=environ) for _ in range(CREW)]
    ends_at, pause, killed = monotonic() + timeout, threading.Event(), 0
    while killed < kills and one(stage.url, OPEN) and monotonic() < ends_at:
        pause.wait(1.0)
        working = [worker for worker in crew if is_working(stage, worker)]
        if working:
            victim = chance.choice(working)
            victim.kill()
            crew[crew.index(victim)] = stage.start(environ=environ)
            killed += 1
    until(lambda: one(stage.url, OPEN) == 0, "all executions to end", max(90.0, ends_at - monotonic()))
    for worker in crew:
        assert worker.node
        worker.terminate()
        assert worker.exit_code() == 0
    return killed


def is_working(stage: PipelineStage, worker: Program) -> bool:
    """Whether a worker is ready and runs something; one that still starts would die for nothing."""
    ready = re.search(r"^ready (\S+)$", worker.said, re.MULTILINE)
    return ready is not None and one(stage.url, RUNNING_OF.format(ready[1])) > 0


def judge(stage: PipelineStage, executions: int) -> None:
    """All of them succeeded; every line was priced, more often only where an attempt was lost; sums are right."""
    stage.in_order()
    succeeded = "SELECT count(*) FROM windlass_execution WHERE status = 'SUCCEEDED'"
    assert one(stage.url, succeeded) == executions
    right = f"SELECT count(*) FROM windlass_done WHERE result = '{sum(range(LINES))}'"
    assert one(stage.url, right) == executions
    assert one(stage.url, "SELECT count(*) FROM windlass_item WHERE status = 2") == executions * LINES
    called = stage.counts("price")
    assert called.keys() == {f"o{n}.{line}" for n in range(executions) for line in range(LINES)}
    lost = one(stage.url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'lost'")
    assert lost, "no worker held anything when it was killed"
    retries = sum(1 for n in range(executions) if n % 50 < LINES)
    at_a_time = 4
    assert sum(called.values()) <= executions * LINES + retries + at_a_time * lost
    totals = stage.programs.ran("total")
    assert executions <= len(totals) <= executions + lost


def test_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P2.3: nothing is lost, doubled or left waiting."""
    assert run_campaign(pipeline_stage, executions=40, kills=6, timeout=200) >= 2
    judge(pipeline_stage, 40)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P2.3: the same for 500."""
    assert run_campaign(pipeline_stage, executions=500, kills=60, timeout=1500) >= 10
    judge(pipeline_stage, 500)


def test_a_build_that_ends_parts_before_their_items_is_found(pipeline_stage: PipelineStage):
    """P9.C2: executions succeed without their items."""
    run_campaign(pipeline_stage, executions=3, kills=0, timeout=90, build="parts end first")
    assert "V6 all items of an ended execution have ended" in broken_rules(pipeline_stage.url)
