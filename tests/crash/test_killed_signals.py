"""Senders and nodes that die while they release jobs that wait for a signal."""

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, statuses
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until
from windlass import Call

KEY = "order:7:approved"
WAITERS = 3
OPEN = "SELECT count(*) FROM windlass_signal_wait WHERE open = 1"


def waiting(stage: Stage, timeout: float | None = None) -> list[Call[int]]:
    return [stage.app.bind(bodies.note, number).await_signal(KEY, timeout) for number in range(WAITERS)]


def sender_died(stage: Stage, point: str) -> None:
    environ = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": f"{point}=kill"}
    sender = stage.programs.start("signaler", stage.url, KEY, environ=environ)
    assert sender.exit_code() == KILLED, sender.printed


def test_sender_killed_before_its_commit_has_signaled_no_job(stage: Stage):
    """J8.5: all of them wait on; the signal can be sent again, and each then runs once."""
    stage.app.enqueue_many(waiting(stage))
    sender_died(stage, "signal.before_commit")
    assert (statuses(stage.url), one(stage.url, OPEN)) == ({"WAITING": WAITERS}, WAITERS)
    assert stage.app.signal(KEY) == WAITERS
    stage.finished()
    assert sorted(map(int, stage.programs.ran())) == list(range(WAITERS))


def test_sender_killed_after_its_commit_has_signaled_all(stage: Stage):
    """J8.5: no notification was sent and no answer came, yet each runs once; a second signal finds no waiter."""
    stage.app.enqueue_many(waiting(stage))
    sender_died(stage, "signal.after_commit")
    assert (statuses(stage.url), one(stage.url, OPEN)) == ({"PENDING": WAITERS}, 0)
    assert stage.app.signal(KEY) == 0
    stage.finished()
    assert sorted(map(int, stage.programs.ran())) == list(range(WAITERS))


def test_node_killed_while_it_ends_waits_has_ended_none(stage: Stage):
    """J8.5: another node does; each fails by one attempt, and no body runs."""
    stage.app.enqueue_many(waiting(stage, timeout=0.5))
    node = stage.start("wait.expired=kill")
    assert node.exit_code() == KILLED, node.printed
    assert statuses(stage.url) == {"WAITING": WAITERS}
    stage.finished()
    assert (stage.programs.ran(), statuses(stage.url)) == ([], {"FAILED": WAITERS})
    assert one(stage.url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'failed'") == WAITERS


def test_signal_ends_a_wait_of_a_node_that_was_killed_before_its_timeout(stage: Stage):
    """J8.5: what died waits no less: the wait is a row, and not the node's."""
    stage.app.enqueue_many(waiting(stage, timeout=3600))
    node = stage.start("heartbeat.after_beat=kill@2")
    assert node.exit_code() == KILLED, node.printed
    until(lambda: statuses(stage.url) == {"WAITING": WAITERS}, "all of them to wait")
    assert stage.app.signal(KEY) == WAITERS
    stage.finished()
    assert sorted(map(int, stage.programs.ran())) == list(range(WAITERS))
