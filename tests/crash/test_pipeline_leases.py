"""Crash matrix of executions: workers that die or stop while they hold them, and steps that kill their process."""

from functools import partial

from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.crashing import KILLED
from tests.support.facts import literal, one, rows
from tests.support.freezing import while_no_write_runs
from tests.support.pipeline_crashing import PipelineStage
from tests.support.pipeline_invariants import broken_rules
from tests.support.programs import Program
from tests.support.waiting import until
from windlass import ExecutionStatus
from windlass.pipelines.execution_handle import ExecutionHandle

LINES = 3 * BUFFER + 5
MANY = 128
POISON = 60
STRICT = {"WINDLASS_NODE__CRASH_BUDGET": "1"}
EXECUTIONS = 6


def began(stage: PipelineStage, count: int = 1) -> None:
    until(lambda: len(stage.programs.ran("began")) >= count, "the bodies to begin")


def test_a_worker_killed_in_a_step_is_followed_by_one_other(pipeline_stage: PipelineStage):
    """P9.C5, P2.3: in a step, and in an item of a part; two wait for them, and each step is finished once."""
    stage = pipeline_stage
    single = stage.submit("steps", Order("o0", holds=1), "held")
    many = stage.submit("ordered", Order("o1", LINES, holds=3), "held-too")
    victims = [stage.start(queue=queue) for queue in ("held", "held-too")]
    began(stage, 2)
    for victim in victims:
        victim.kill()
    stage.programs.open_gate()
    other = stage.start()
    assert other.node
    stage.finished()
    assert (single.result(1), many.result(1)) == ("o0", sum(range(LINES)))
    assert [len(stage.calls(step, "o0")) for step in ("first", "second", "third")] == [1, 2, 1]
    assert {name for name, times in stage.counts("price").items() if times > 1} == {"o1.3"}
    assert stage.programs.ran("total") == [str(many.id)]


def stopped_past_its_lease(stage: PipelineStage, run: ExecutionHandle, build: str = "") -> Program:
    """A worker that was stopped in a body until another one had gone on with its execution, and continues."""
    first = stage.start(environ={"TEST_BROKEN_BUILD": build})
    assert first.node
    began(stage)
    second = stage.start()
    assert second.node
    with while_no_write_runs(stage.url):
        first.freeze()
    stage.programs.open_gate()
    until(lambda: (stage.value(run, "status") != "OPEN") or ("retry", 2) in stage.log(run), "the other to go on")
    second.kill()
    first.resume()
    return first


def test_a_late_checkpoint_of_a_stopped_worker_is_refused(pipeline_stage: PipelineStage):
    """P9.C5b, P2.4: the checkpoint of a step is refused by its fence and counted; the second one's result stands."""
    stage = pipeline_stage
    run = stage.submit("steps", Order("o0", holds=1))
    first = stopped_past_its_lease(stage, run)
    first.says(f"execution {run.id}: a step came too late and was refused", 90)
    assert run.status() is ExecutionStatus.SUCCEEDED
    assert [step for kind, step in stage.log(run) if kind == "step"] == [0, 1]
    assert len(stage.calls("third", "o0")) == 1
    first.terminate()
    assert first.exit_code() == 0
    stage.in_order()


def test_a_late_item_of_a_stopped_worker_is_refused(pipeline_stage: PipelineStage):
    """P9.C5b, P2.4: the same for an item of a part."""
    stage = pipeline_stage
    run = stage.submit("ordered", Order("o0", LINES, holds=3))
    first = stopped_past_its_lease(stage, run)
    first.says(f"execution {run.id}: a step came too late and was refused", 90)
    assert run.result(1) == sum(range(LINES))
    assert stage.counts("price")["o0.3"] == 2
    assert stage.programs.ran("total") == [str(run.id)]
    first.terminate()
    assert first.exit_code() == 0
    stage.in_order()


def test_a_build_without_fences_is_found(pipeline_stage: PipelineStage):
    """P9.C5b, P2.4: its late checkpoint gets through, and the log shows a step that was finished twice."""
    stage = pipeline_stage
    run = stage.submit("steps", Order("o0", holds=1, fails=2))
    first = stopped_past_its_lease(stage, run, "no fence")
    until(lambda: stage.log(run).count(("step", 1)) == 2, "the late step to be written")
    first.kill()
    assert "V2 a step is finished once" in broken_rules(stage.url)


def has_ended(stage: PipelineStage, run: ExecutionHandle, worker: Program) -> bool:
    return worker.process.poll() is not None or stage.value(run, "status") != "OPEN"


def feed(stage: PipelineStage, run: ExecutionHandle) -> int:
    """Start workers, one after another, until an execution has ended; returns how many died."""
    deaths = 0
    while True:
        worker = stage.start(environ=STRICT)
        until(partial(has_ended, stage, run, worker), "the worker to die, or the execution to end")
        if worker.process.poll() is None:
            assert worker.node
            worker.terminate()
            assert worker.exit_code() == 0
            return deaths
        assert worker.exit_code() == KILLED, worker.printed
        deaths += 1
        assert deaths < 10, "it kills its workers for ever"


def test_a_step_that_kills_its_process_ends_its_execution(pipeline_stage: PipelineStage):
    """P9.C9, P4.4: as `worker_lost`, within the crash budget; the step before it is not called again."""
    stage = pipeline_stage
    run = stage.submit("steps", Order("o0", kills=1))
    assert feed(stage, run) == 2
    assert run.status() is ExecutionStatus.DLQ
    assert rows(stage.url, "SELECT status, reason FROM windlass_done") == [("FAILED", "worker_lost")]
    assert (len(stage.calls("first", "o0")), len(stage.calls("second", "o0"))) == (1, 2)
    stage.in_order()


def test_an_item_that_kills_its_process_ends_its_execution(pipeline_stage: PipelineStage):
    """P9.C9, P4.4: the failure names the item."""
    stage = pipeline_stage
    run = stage.submit("wide", Order("o0", MANY, kills=POISON))
    deaths = feed(stage, run)
    assert deaths == stage.counts("price")[f"o0.{POISON}"] == 3  # one in the claim of the execution, two in its part
    assert run.status() is ExecutionStatus.DLQ
    assert stage.value(run, "transition_key") == f"{run.id}:1:1:{POISON}"
    reason = f"SELECT reason FROM windlass_done WHERE id = {literal(stage.url, run.id)}"
    assert one(stage.url, reason) == "worker_lost"
    stage.in_order()


def test_an_item_that_kills_its_process_is_rejected_and_the_others_are_done(pipeline_stage: PipelineStage):
    """P9.C9, P4.4, P5.1: with `recover_on_failure`; 127 of 128 reach the reduction."""
    stage = pipeline_stage
    run = stage.submit("recovering", Order("o0", MANY, kills=POISON))
    assert feed(stage, run) == 3
    assert run.result(1) == sum(range(MANY)) - POISON
    assert sorted(status for status, _ in stage.items(run).values()) == [2] * (MANY - 1) + [4]
    found = rows(stage.url, "SELECT step, error_class FROM windlass_reject")
    assert found == [(1, "WorkerLostError")]
    assert stage.programs.ran("total") == [str(run.id)]
    stage.in_order()


def test_sweepers_make_executions_due_once(pipeline_stage: PipelineStage):
    """P9.C10: one that dies in the middle has done nothing; of two at once, one does it."""
    stage = pipeline_stage
    runs = [stage.submit("steps", Order(f"o{n}"), "left") for n in range(EXECUTIONS)]
    rows(stage.url, "UPDATE windlass_hot SET due = NULL")
    often = {"WINDLASS_NODE__SWEEP_INTERVAL": "0.2"}
    assert stage.start("sweep.execution_woken=kill", "nobody", often).exit_code() == KILLED
    assert one(stage.url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == EXECUTIONS
    others = [stage.start("", "nobody", often) for _ in range(2)]
    until(lambda: one(stage.url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == 0, "all to be due")
    for other in others:
        assert other.node
        other.terminate()
        assert other.exit_code() == 0
    assert sum(other.printed.count(f"{EXECUTIONS} executions or parts of them waited") for other in others) == 1
    stage.finished()
    for number, run in enumerate(runs):
        assert run.result(1) == f"o{number}"
        assert [len(stage.calls(step, f"o{number}")) for step in ("first", "second", "third")] == [1, 1, 1]
