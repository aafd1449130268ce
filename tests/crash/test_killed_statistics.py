"""Workers that die, or are stopped, while they add up what was counted."""

import pytest

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until

UNUSED_QUEUE = "nobody"
"""A queue without jobs: a node that serves only it does duties, and ends no job."""
JOBS = 40
OFTEN = {"WINDLASS_NODE__STATISTICS_INTERVAL": "0.05"}
SELDOM = {"WINDLASS_NODE__STATISTICS_INTERVAL": "3600"}
NOT_ADDED_UP = "SELECT count(*) FROM windlass_stat_delta"
ADDED_UP = "SELECT coalesce(sum(succeeded), 0) FROM windlass_stat"


def leave_counts(stage: Stage) -> int:
    """Have jobs of two queues end while the duty has passed for this hour; answers how many counts are left."""
    calls = [stage.app.bind(bodies.note, number).using(queue=f"q{number % 2}") for number in range(JOBS)]
    worker = stage.programs.worker(stage.url, environ={**SHORT_LEASES, **SELDOM})
    passed = "SELECT count(*) FROM windlass_lease WHERE name = 'statistics' AND passed_at IS NOT NULL"
    until(lambda: one(stage.url, passed) == 1, "the duty to have passed")
    handles = [call.enqueue() for call in calls]
    for handle in handles:
        handle.join(90)
    worker.terminate()
    assert worker.exit_code() == 0
    left = int(one(stage.url, NOT_ADDED_UP))
    assert left >= 2
    return left


def succeeded(stage: Stage) -> dict[str, int]:
    return {queue.name: queue.last_hour.succeeded for queue in stage.app.queues() if queue.name != UNUSED_QUEUE}


def test_a_node_killed_while_it_adds_up_loses_and_doubles_nothing(stage: Stage):
    """J7.5: at each moment of it; what was not committed is there for the next node, what was is not taken again."""
    left = leave_counts(stage)
    everything = {"q0": JOBS // 2, "q1": JOBS // 2}
    for point in ("statistics.taken", "statistics.before_commit"):
        assert stage.start(f"{point}=kill", [UNUSED_QUEUE], OFTEN).exit_code() == KILLED, point
        assert (one(stage.url, NOT_ADDED_UP), one(stage.url, ADDED_UP)) == (left, 0), point
        assert succeeded(stage) == everything, point
    assert stage.start("statistics.after_commit=kill", [UNUSED_QUEUE], OFTEN).exit_code() == KILLED
    assert (one(stage.url, NOT_ADDED_UP), one(stage.url, ADDED_UP)) == (0, JOBS)
    assert succeeded(stage) == everything
    sound = stage.start("", [UNUSED_QUEUE], OFTEN)
    before = one(stage.url, "SELECT passed_at FROM windlass_lease WHERE name = 'statistics'")
    passed_on = f"SELECT count(*) FROM windlass_lease WHERE name = 'statistics' AND passed_at > {before}"
    until(lambda: one(stage.url, passed_on) == 1, "the next node to take the duty up")
    sound.terminate()
    assert sound.exit_code() == 0
    assert succeeded(stage) == everything
    stage.in_order()


@pytest.mark.parametrize("action", ["kill@2", "raise@1"])
def test_nodes_that_add_up_while_jobs_end_and_one_of_them_fails_count_each_job_once(stage: Stage, action: str):
    """J7.5: killed, or stopped by an error, in the middle of a batch, beside one that goes on."""
    doomed = stage.start(f"statistics.before_commit={action}", environ=OFTEN)
    sound = stage.start("", environ=OFTEN)
    assert doomed.node
    assert sound.node
    handles = []

    def it_came_to_harm() -> bool:
        handles.extend(stage.app.enqueue_many([stage.app.bind(bodies.note, number) for number in range(5)]))
        return "failpoint statistics.before_commit" in doomed.printed

    until(it_came_to_harm, "the lease to come to the one that fails")
    for handle in handles:
        handle.join(90)
    killed = action.startswith("kill")
    assert not killed or doomed.exit_code() == KILLED
    until(lambda: one(stage.url, NOT_ADDED_UP) == 0, "all to be added up")
    for worker in [sound] if killed else [sound, doomed]:
        worker.terminate()
        assert worker.exit_code() == 0
    assert sum(succeeded(stage).values()) == one(stage.url, ADDED_UP) == len(handles)
    stage.in_order()
