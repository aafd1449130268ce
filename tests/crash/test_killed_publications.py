"""Workers of pipelines that die while they hand items over, or admit them from the backlog."""

from collections import Counter

from tests.crash.programs.pipelines import SUBSCRIBERS, Order
from tests.support.crashing import KILLED
from tests.support.facts import literal, one, rows
from tests.support.pipeline_crashing import DeadWorker, PipelineStage
from tests.support.pipeline_invariants import broken_rules
from tests.support.waiting import until

FEW = 5
CHUNKED = 505
"""More than one transaction hands over."""


def admitted_once(stage: PipelineStage, order: Order) -> None:
    """Each item is one execution of each subscriber, which ran (perhaps also on the worker that died)."""
    for subscriber in SUBSCRIBERS:
        called = stage.counts(subscriber)
        assert [name for name in names(order) if not called[name]] == [], subscriber
        where = f"WHERE pipeline = '{subscriber}' AND status = 'SUCCEEDED' AND key LIKE '{order.name}.%'"
        assert one(stage.url, f"SELECT count(*) FROM windlass_execution {where}") == order.lines
    where = f"WHERE status = 'ADMITTED' AND key LIKE '{order.name}.%'"
    assert one(stage.url, f"SELECT count(DISTINCT execution_id) FROM windlass_handoff {where}") == 2 * order.lines


def names(order: Order) -> list[str]:
    return [f"{order.name}.{number}" for number in range(order.lines)]


def handed_over(stage: PipelineStage, dead: DeadWorker) -> int:
    """How many hand-offs of an execution are stored."""
    source = literal(stage.url, dead.run.id)
    return int(one(stage.url, f"SELECT count(*) FROM windlass_handoff WHERE source_id = {source}"))


def test_a_worker_that_dies_between_two_targets_hands_over_to_each_once(pipeline_stage: PipelineStage):
    """P9.C7, P7.1: before the commit neither target has an item, after it both have all; no step is called again."""
    stage = pipeline_stage
    points = {
        "publish.first_target_written": ("publisher", Order("o0", FEW)),
        "completer.before_commit": ("publisher", Order("o1", FEW)),
        "completer.after_commit": ("publisher", Order("o2", FEW)),
    }
    found = stage.killed_at(points)
    assert [handed_over(stage, dead) for dead in found] == [0, 0, 2 * FEW]
    assert [stage.value(dead.run, "status") for dead in found] == ["OPEN", "OPEN", "SUCCEEDED"]
    stage.finished()
    for dead in found:
        assert stage.value(dead.run, "status") == "SUCCEEDED"
        admitted_once(stage, dead.order)
        assert stage.counts("named")[dead.order.name] == 1, dead.point


def test_a_publication_continues_after_the_last_chunk_of_a_killed_worker(pipeline_stage: PipelineStage):
    """P9.C7, P7.1: what is stored is not handed over again, in the middle of a chunk nothing of it is."""
    stage = pipeline_stage
    points = {
        "publish.first_target_written@1": ("publisher", Order("o0", CHUNKED)),
        "publish.chunk_after_commit": ("publisher", Order("o1", CHUNKED)),
        "publish.first_target_written@3": ("publisher", Order("o2", CHUNKED)),
    }
    found = stage.killed_at(points)
    assert [handed_over(stage, dead) for dead in found] == [0, 1_000, 1_000]
    stage.finished()
    for dead in found:
        assert [kind for kind, _ in stage.log(dead.run)].count("published") == 1, dead.point
        assert stage.log(dead.run)[-1][0] == "ended"
        admitted_once(stage, dead.order)
        assert stage.counts("named")[dead.order.name] == 1, dead.point
    counted = rows(stage.url, "SELECT sum(suppressed), sum(rejected), sum(failed) FROM windlass_handoff_count")
    assert [int(number) for number in counted[0]] == [0, 0, 0]


def test_a_worker_that_dies_while_it_drains_the_backlog_admits_nothing_twice(pipeline_stage: PipelineStage):
    """P9.C7, P7.2: killed before and after the commit of a batch of the backlog."""
    stage = pipeline_stage
    publications = stage.app.publications
    sound = stage.start()
    assert sound.node
    assert publications.pause("names", "left")
    orders = [Order(f"o{number}", FEW) for number in range(2)]
    for order in orders:
        stage.submit("publisher", order)
    until(lambda: waiting(stage) == 2 * FEW, "the items to wait", 90)
    stage.settled()
    sound.terminate()
    assert sound.exit_code() == 0
    assert publications.resume("names", "left")
    for point in ("publish.backlog_before_commit", "publish.backlog_after_commit"):
        assert stage.start(f"{point}=kill").exit_code() == KILLED
        assert waiting(stage) == (2 * FEW if "before" in point else 0)
    stage.finished()
    for order in orders:
        admitted_once(stage, order)
    assert stage.counts("named") == Counter(order.name for order in orders)


def test_a_build_that_publishes_outside_of_the_success_is_found(pipeline_stage: PipelineStage):
    """P9.C7, P7.1: subscribers have items of an execution that has not succeeded when its worker dies."""
    stage, rule = pipeline_stage, "V7 what was handed over is of a success, or of a stored chunk"
    for number, build in enumerate(("", "published apart")):
        stage.submit("publisher", Order(f"o{number}", FEW), f"victim-{number}")
        dying = stage.start("completer.before_commit=kill", f"victim-{number}", {"TEST_BROKEN_BUILD": build})
        assert dying.exit_code() == KILLED, dying.printed
        assert (rule in broken_rules(stage.url)) == bool(build)


def test_a_build_that_ignores_the_keys_of_hand_offs_is_found(pipeline_stage: PipelineStage):
    """P7.2: what was published twice under one key is handed over twice; a sound build suppresses it."""
    stage, rule = pipeline_stage, "V7 a key is handed over once"
    for number, build in enumerate(("", "keys ignored")):
        for _ in range(2):
            stage.submit("publisher", Order(f"o{number}", FEW))
        worker = stage.start(environ={"TEST_BROKEN_BUILD": build})
        assert worker.node
        stage.settled()
        worker.terminate()
        assert worker.exit_code() == 0
        assert (rule in broken_rules(stage.url)) == bool(build)


def waiting(stage: PipelineStage) -> int:
    return int(one(stage.url, "SELECT count(*) FROM windlass_handoff WHERE status = 'WAITING'"))
