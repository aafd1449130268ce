"""Crash matrix of executions: workers and callers die at every boundary of a pipeline."""

from collections import Counter

from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.crashing import KILLED
from tests.support.facts import literal, one, rows
from tests.support.pipeline_crashing import DeadWorker, PipelineStage
from tests.support.waiting import until
from windlass import ExecutionStatus

THREE_STEPS = [("submitted", 0), ("step", 0), ("step", 1), ("ended", 2)]
LINES = 3 * BUFFER + 5
"""Four chunks, and so four parts."""
FEW = 5
"""One chunk, which the claim of the execution runs itself."""


def total(lines: int) -> int:
    return sum(range(lines))


def names(order: Order) -> list[str]:
    return [f"{order.name}.{number}" for number in range(order.lines)]


def has_all_lines(stage: PipelineStage, dead: DeadWorker) -> None:
    """Every line was priced, under one effect key, and the sum was made of each once."""
    assert dead.run.result(1) == total(dead.order.lines), dead.point
    for name in names(dead.order):
        calls = stage.calls("price", name)
        assert calls, (dead.point, name)
        assert len({effect for _, effect in calls}) == 1, (dead.point, calls)


def test_a_submission_is_stored_whole_or_not_at_all(pipeline_stage: PipelineStage):
    """P9.C0, P3.1: before the commit nothing is stored; after it the execution runs, and its key is taken."""
    stage = pipeline_stage
    for point, stored in (("submit.before_commit", 0), ("submit.after_commit", 1)):
        environ = {"WINDLASS_FAILPOINTS": f"{point}=kill"}
        caller = stage.programs.start("pipeline_caller", stage.url, "submit", "order-1", environ=environ)
        assert caller.exit_code() == KILLED, caller.printed
        for table in ("execution", "transition", "hot", "job"):
            assert one(stage.url, f"SELECT count(*) FROM windlass_{table}") == stored, (point, table)
    stage.in_order()
    again = stage.programs.start("pipeline_caller", stage.url, "submit", "order-1")
    assert again.says(r"^stored \S+ (\w+)$")[1] == "True"
    stage.finished()
    assert stage.counts("price") == Counter(f"order-1.{number}" for number in range(5))
    assert rows(stage.url, "SELECT status FROM windlass_execution") == [("SUCCEEDED",)]


def test_a_step_whose_boundary_was_not_committed_runs_again_with_the_same_keys(pipeline_stage: PipelineStage):
    """P9.C1, P9.C4, P2.3, P2.5: from the last stored version, with one row of the log for the step."""
    stage = pipeline_stage
    points = ("step.after_body@2", "checkpoint.written@2", "checkpoint.before_commit@2")
    found = stage.killed_at({point: ("steps", Order(f"o{n}")) for n, point in enumerate(points)})
    for dead in found:
        assert stage.log(dead.run) == THREE_STEPS[:2], dead.point
        assert stage.value(dead.run, "row_version") == 2
    stage.finished()
    for dead in found:
        name, run = dead.order.name, dead.run
        assert run.result(1) == name
        assert stage.log(run) == THREE_STEPS, dead.point
        assert stage.calls("second", name) == [(f"{run.id}:1:1", f"{run.id}:1")] * 2
        assert len(stage.calls("first", name)) == len(stage.calls("third", name)) == 1


def test_an_item_whose_write_was_not_committed_runs_again_with_the_same_keys(pipeline_stage: PipelineStage):
    """P9.C1, P9.C4, P2.5: in the claim of the execution, and in a part; no other item is called again."""
    stage = pipeline_stage
    points = {
        "step.after_body@4": FEW,  # after the expansion and two items
        "checkpoint.before_commit@4": FEW,
    }
    found = stage.killed_at({point: ("ordered", Order(f"o{n}", n_)) for n, (point, n_) in enumerate(points.items())})
    for dead in found:
        assert sorted(stage.items(dead.run).values()) == [(0, 1)] * 3 + [(2, 1)] * 2, dead.point
    stage.finished()
    for dead in found:
        has_all_lines(stage, dead)
        repeated = [name for name in names(dead.order) if len(stage.calls("price", name)) == 2]
        assert repeated == [f"{dead.order.name}.2"], dead.point
        assert len(set(stage.calls("price", repeated[0]))) == 1
        assert stage.programs.ran("total").count(str(dead.run.id)) == 1


def test_the_step_after_a_committed_boundary_starts_without_a_wakeup(pipeline_stage: PipelineStage):
    """P9.C2, P2.3: the finished step is not called again, and the next one is called once."""
    stage = pipeline_stage
    found = stage.killed_at(
        {
            "checkpoint.after_commit@1": ("steps", Order("o0")),
            "checkpoint.after_commit@2": ("steps", Order("o1")),
            "completer.after_commit@1": ("steps", Order("o2")),
        }
    )
    stage.finished()
    for dead in found:
        assert dead.run.result(1) == dead.order.name
        assert stage.log(dead.run) == THREE_STEPS, dead.point
        for step in ("first", "second", "third"):
            assert len(stage.calls(step, dead.order.name)) == 1, (dead.point, step)


def test_a_part_ends_with_its_successor_or_not_at_all(pipeline_stage: PipelineStage):
    """P9.C2, P9.C1: killed before and after the end of a part; no item is called again, the reduction once."""
    stage = pipeline_stage
    order = {f"part.before_commit@{n}": ("ordered", Order(f"o{n}", LINES)) for n in (1, 3)}
    order |= {f"completer.after_commit@{n}": ("ordered", Order(f"a{n}", LINES)) for n in (2, 3)}
    found = stage.killed_at(order)
    stage.finished()
    for dead in found:
        has_all_lines(stage, dead)
        assert stage.programs.ran("total").count(str(dead.run.id)) == 1
        called = stage.counts("price")
        again = [name for name in names(dead.order) if called[name] > 1]
        assert again == [], (dead.point, again)


def test_a_retry_of_a_step_spends_its_attempt_with_its_commit(pipeline_stage: PipelineStage):
    """P9.C3, P4.2: before the commit the attempt is not spent; after it once, and no start is before its due time."""
    stage = pipeline_stage
    before, after = stage.killed_at(
        {
            "retry.before_commit": ("steps", Order("o0", fails=1)),
            "retry.after_commit": ("steps", Order("o1", fails=1)),
        }
    )
    assert (stage.value(before.run, "attempt"), stage.value(after.run, "attempt")) == (1, 2)
    assert stage.log(before.run) == THREE_STEPS[:2]
    assert stage.log(after.run) == [*THREE_STEPS[:2], ("retry", 1)]
    due = stage.hot(after.run.id, "due")
    stage.finished()
    retried = [*THREE_STEPS[:2], ("retry", 1), *THREE_STEPS[2:]]
    assert stage.log(before.run) == stage.log(after.run) == retried
    for dead, attempts in ((before, (1, 1, 2)), (after, (1, 2))):
        keys = [transition for transition, _ in stage.calls("second", dead.order.name)]
        assert keys == [f"{dead.run.id}:1:{attempt}" for attempt in attempts]
    assert stage.starts("second", "o1")[1] >= due


def test_a_retry_of_an_item_spends_its_attempt_with_its_commit(pipeline_stage: PipelineStage):
    """P9.C3, P4.2: in the row of the item, while its siblings wait or go on."""
    stage = pipeline_stage
    before, after = stage.killed_at(
        {
            "checkpoint.before_commit@2": ("ordered", Order("o0", FEW, fails=0)),
            "checkpoint.after_commit@2": ("ordered", Order("o1", FEW, fails=0)),
        }
    )
    assert (min(stage.items(before.run).items())[1], min(stage.items(after.run).items())[1]) == ((0, 1), (1, 2))
    question = f"SELECT max(due) FROM windlass_item WHERE execution_id = {literal(stage.url, after.run.id)}"
    due = one(stage.url, question)
    stage.finished()
    for dead, attempts in ((before, (1, 1, 2)), (after, (1, 2))):
        keys = [transition for transition, _ in stage.calls("price", f"{dead.order.name}.0")]
        assert keys == [f"{dead.run.id}:1:{attempt}:0" for attempt in attempts]
        assert {stage.counts("price")[name] for name in names(dead.order)[1:]} == {1}
        has_all_lines(stage, dead)
    assert stage.starts("price", "o1.0")[1] >= due


def test_a_final_failure_is_stored_with_its_status_or_not_at_all(pipeline_stage: PipelineStage):
    """P9.C6, P6.2: of a step, of an item in the claim of the execution, and of an item in a part."""
    stage = pipeline_stage
    found = stage.killed_at(
        {
            "dead_letter.before_commit": ("steps", Order("o0", broken=1)),
            "dead_letter.after_commit": ("steps", Order("o1", broken=1)),
            "failing.before_commit": ("orders", Order("o2", LINES, broken=17)),
            "dead_letter.before_commit@1": ("ordered", Order("o3", LINES, broken=3)),
        }
    )
    statuses = [stage.value(dead.run, "status") for dead in found]
    assert statuses == ["OPEN", "DLQ", "OPEN", "OPEN"]
    assert stage.value(found[2].run, "failing") is None
    assert stage.value(found[3].run, "failing") is not None
    stage.finished()
    for dead in found:
        assert dead.run.status() is ExecutionStatus.DLQ, dead.point
        assert stage.value(dead.run, "error_code") == "ValueError"
        assert [kind for kind, _ in stage.log(dead.run)].count("ended") == 1
    keys = [stage.value(dead.run, "transition_key") for dead in found]
    assert keys == [f"{dead.run.id}:{key}" for dead, key in zip(found, ("1:2", "1:2", "1:2:17", "1:2:3"), strict=True)]
    letters = one(stage.url, "SELECT count(*) FROM windlass_dead_letter")
    assert letters == len(found)


def test_chunks_of_an_expansion_are_stored_once(pipeline_stage: PipelineStage):
    """P9.C1, P9.C2, P2.3: the generator runs again, and no item is lost or doubled."""
    stage = pipeline_stage
    points = [f"{point}@{n}" for point in ("expand.chunk_before_commit", "expand.chunk_after_commit") for n in (1, 3)]
    found = stage.killed_at({point: ("orders", Order(f"o{n}", LINES)) for n, point in enumerate(points)})
    for dead, stored in zip(found, (0, 2, 1, 3), strict=True):
        assert len(stage.items(dead.run)) == stored * BUFFER == stage.value(dead.run, "emitted"), dead.point
        assert stage.value(dead.run, "status") == "OPEN"
    stage.finished()
    for dead in found:
        has_all_lines(stage, dead)
        assert len(stage.calls("lines", dead.order.name)) == 2
        assert len(stage.items(dead.run)) == LINES
        log = stage.log(dead.run)
        assert (log.count(("chunk", 0)), log.count(("staged", 0)), log.count(("staged", 1))) == (3, 1, 1), dead.point
        assert stage.programs.ran("total").count(str(dead.run.id)) == 1


def test_a_redrive_opens_an_execution_once(pipeline_stage: PipelineStage):
    """P9.C6, P6.3: killed before its commit it has not happened; after it the execution runs without the caller."""
    stage = pipeline_stage
    run = stage.submit("orders", Order("o", LINES, broken=17))
    worker = stage.start()
    until(lambda: stage.value(run, "status") == "DLQ", "the execution to fail")
    worker.terminate()
    assert worker.exit_code() == 0
    version = stage.value(run, "row_version")
    for point, opened in (("redrive.before_commit", 0), ("redrive.after_commit", 1)):
        environ = {"WINDLASS_FAILPOINTS": f"{point}=kill"}
        caller = stage.programs.start("pipeline_caller", stage.url, "redrive", run.id, environ=environ)
        assert caller.exit_code() == KILLED, caller.printed
        assert stage.value(run, "row_version") == version + opened
        assert (stage.value(run, "status") == "OPEN") == bool(opened)
        stage.in_order()
    calls = stage.counts("price")
    stage.finished()
    assert run.status() is ExecutionStatus.DLQ
    again = stage.counts("price") - calls
    assert again["o.17"] == 2, "the broken item has its retries again"
    assert {stage.counts("price")[name] for name in names(Order("o", LINES))} <= {0, 1, 4}
