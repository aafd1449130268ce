"""A campaign: many executions of expand, price and reduce, and a worker killed every second; the invariants judge."""

import random
import threading

import pytest

from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.facts import one
from tests.support.pipeline_crashing import PipelineStage
from tests.support.pipeline_invariants import broken_rules
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until
from windlass.domain.clock import monotonic

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(400)]

LINES = 3 * BUFFER + 5
CREW = 3
PATIENT = {**SHORT_LEASES, "WINDLASS_NODE__CRASH_BUDGET": "1000", "WINDLASS_NODE__SWEEP_INTERVAL": "3600"}
"""No execution is given up, and none is saved by the checks: what they would find is a violation here."""
OPEN = "SELECT count(*) FROM windlass_execution WHERE status = 'OPEN'"


def run_campaign(stage: PipelineStage, executions: int, kills: int, timeout: float, build: str = "") -> None:
    """Kill a worker every second, `kills` times, and wait for the executions; what is true then is for the judges."""
    chance = random.Random(executions)
    stage.pipelines().named["orders"].submit_many([Order(f"o{n}", LINES, fails=n % 50) for n in range(executions)])
    environ = {**PATIENT, "TEST_BROKEN_BUILD": build}
    crew = [stage.start(environ=environ) for _ in range(CREW)]
    ends_at, pause = monotonic() + timeout, threading.Event()
    for _ in range(kills):
        pause.wait(1.0)
        victim = crew.pop(chance.randrange(CREW))
        victim.kill()
        crew.append(stage.start(environ=environ))
        if monotonic() > ends_at:
            break
    until(lambda: one(stage.url, OPEN) == 0, "all executions to end", max(90.0, ends_at - monotonic()))
    for worker in crew:
        assert worker.node
        worker.terminate()
        assert worker.exit_code() == 0


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
    retries = sum(1 for n in range(executions) if n % 50 < LINES)
    at_a_time = 4
    assert sum(called.values()) <= executions * LINES + retries + at_a_time * lost
    totals = stage.programs.ran("total")
    assert executions <= len(totals) <= executions + lost


def test_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P2.3: nothing is lost, doubled or left waiting."""
    run_campaign(pipeline_stage, executions=40, kills=8, timeout=200)
    judge(pipeline_stage, 40)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_executions_survive_a_worker_killed_every_second(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P9.C5, P2.3: the same for 500."""
    run_campaign(pipeline_stage, executions=500, kills=60, timeout=1500)
    judge(pipeline_stage, 500)


def test_a_build_that_ends_parts_before_their_items_is_found(pipeline_stage: PipelineStage):
    """P9.C2: executions succeed without their items."""
    run_campaign(pipeline_stage, executions=3, kills=0, timeout=90, build="parts end first")
    assert "V6 all items of an ended execution have ended" in broken_rules(pipeline_stage.url)
