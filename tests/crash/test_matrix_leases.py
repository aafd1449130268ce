"""Crash matrix: workers die while they hold jobs, and while they look after each other's."""

from datetime import datetime

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows, statuses
from tests.support.invariants import check_gates
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until
from windlass import JobStatus
from windlass.domain.clock import from_micros

UNUSED_QUEUE = "nobody"
"""A queue without jobs: a node that serves only it recovers, and runs nothing."""
JOBS = 6
RUNNING_OF = "SELECT count(*) FROM windlass_hot WHERE status = 'RUNNING' AND node = '{}'"


def lease_of(url: str, node: str) -> datetime:
    return from_micros(one(url, f"SELECT lease_until FROM windlass_node WHERE id = '{node}'"))


def test_a_killed_worker_keeps_its_jobs_until_its_lease_is_over_and_then_one_other_takes_them(stage: Stage):
    """P9.C5, J7.2, J3.2: killed between claim and slot, before the body, in a heartbeat; two wait for the spoils."""
    victims = stage.killed_at(
        {
            "claim.after_commit": stage.app.bind(bodies.pay, 0),
            "run.before_body": stage.app.bind(bodies.pay, 1),
            "heartbeat.before_beat@3": stage.app.bind(bodies.hold, 2),
            "heartbeat.after_beat@3": stage.app.bind(bodies.hold, 3),
        }
    )
    assert [victim.job.status() for victim in victims] == [JobStatus.RUNNING] * len(victims)
    leases = {row[0]: from_micros(row[1]) for row in rows(stage.url, "SELECT id, lease_until FROM windlass_node")}
    stage.programs.open_gate()
    stage.programs.worker(stage.url)
    stage.finished()
    assert sorted(stage.programs.ran()) == ["0", "1", "2", "3"]
    for victim in victims:
        lost, ran = stage.app.history(victim.job.id)
        assert (lost.outcome, lost.started_at, ran.outcome) == ("lost", None, "succeeded"), victim.point
        assert ran.picked_at is not None
        assert ran.picked_at >= leases[str(lost.node)], "claimed while its owner still had a lease"
    assert statuses(stage.url) == {"SUCCEEDED": len(victims)}


def test_a_claim_that_was_not_committed_never_was(stage: Stage):
    """P9.C5, J3.2: the job waits with its first fence; the next worker need not wait for any lease."""
    victims = stage.killed_at(
        {"claim.before_commit": stage.app.bind(bodies.pay, 0), "node.registered": stage.app.bind(bodies.pay, 1)}
    )
    assert rows(stage.url, "SELECT DISTINCT status, fence FROM windlass_hot") == [("PENDING", 0)]
    stage.in_order()
    stage.finished()
    for victim in victims:
        assert stage.history(victim.job) == ["succeeded"]
        assert stage.app.get(victim.job.id).crash_count == 0


def lose_a_worker(stage: Stage, jobs: int) -> str:
    """Have a worker die with that many jobs in its hands, each with a place of a resource; answers its node."""
    stage.app.configure_resource("stripe", jobs)
    worker = stage.programs.worker(stage.url, jobs)
    node = worker.node
    stage.app.enqueue_many([stage.app.bind(bodies.hold, n).using(resource="stripe") for n in range(jobs)])
    until(lambda: len(stage.programs.ran("began")) == jobs, "all jobs to begin")
    worker.kill()
    stage.programs.open_gate()
    return node


def test_recovery_killed_at_any_point_is_taken_up_by_the_next_and_done_once(stage: Stage):
    """P9.C10, J7.2, J7.4: marked but not recovered, half recovered, recovered, not published; each job is lost once."""
    node = lose_a_worker(stage, JOBS)
    for point in ("recovery.marked", "recovery.attempt_written@4", "recovery.before_commit"):
        name, at, nth = point.partition("@")
        assert stage.start(f"{name}=kill{at}{nth}", [UNUSED_QUEUE]).exit_code() == KILLED, point
        check_gates(stage.url)
        assert one(stage.url, RUNNING_OF.format(node)) == JOBS, f"what died at {point} has committed nothing"
        assert one(stage.url, "SELECT count(*) FROM windlass_attempt") == 0
        assert one(stage.url, f"SELECT state FROM windlass_node WHERE id = '{node}'") == "lost"
    assert stage.start("recovery.after_commit=kill", [UNUSED_QUEUE]).exit_code() == KILLED
    assert statuses(stage.url) == {"PENDING": JOBS}
    stage.in_order()
    stage.finished()
    assert rows(stage.url, "SELECT DISTINCT attempts, crash_count, fence FROM windlass_done") == [(1, 1, 3)]
    assert sorted(int(n) for n in stage.programs.ran()) == list(range(JOBS))


def test_concurrent_recoveries_requeue_each_job_once_although_one_of_them_dies(stage: Stage):
    """P9.C10, J7.2, J7.4: one stands still in the middle of its batch until the others are there, and then dies."""
    jobs = 20
    lose_a_worker(stage, jobs)
    doomed = stage.start("recovery.attempt_written=sleep:3@2;recovery.attempt_written=kill@3", [UNUSED_QUEUE])
    doomed.says("failpoint recovery.attempt_written: sleep")
    others = [stage.start("recovery.attempt_written=sleep:0.02", [UNUSED_QUEUE]) for _ in range(2)]
    assert doomed.exit_code() == KILLED
    until(lambda: statuses(stage.url) == {"PENDING": jobs}, "all jobs to be brought back")
    for other in others:
        assert other.node
        other.terminate()
        assert other.exit_code() == 0
    stage.in_order()
    assert sum(int(count) for other in others for count in _recovered(other.printed)) == jobs
    stage.finished()
    assert rows(stage.url, "SELECT DISTINCT attempts, crash_count, fence FROM windlass_done") == [(1, 1, 3)]


def _recovered(said: str) -> list[str]:
    return [line.split("was lost; ")[1].split()[0] for line in said.splitlines() if "are PENDING again" in line]


def test_giving_a_job_up_is_one_transaction_too(stage: Stage):
    """P9.C9, P9.C6, J7.4: with its crash budget spent it fails as `worker_lost`, once, though its judge dies first."""
    stage.app.bind(bodies.kill_its_process, 0).using(business_key="poison", on_failure=bodies.mourn).enqueue()
    strict = {"WINDLASS_NODE__CRASH_BUDGET": "0"}
    assert stage.programs.worker(stage.url, environ={**SHORT_LEASES, **strict}).exit_code() == KILLED
    assert stage.start("recovery.given_up=kill", [UNUSED_QUEUE], strict).exit_code() == KILLED
    assert statuses(stage.url) == {"RUNNING": 1}
    assert one(stage.url, "SELECT count(*) FROM windlass_attempt") == 0
    judge = stage.start("", [UNUSED_QUEUE], strict)
    until(lambda: statuses(stage.url).get("FAILED") == 1, "the job to be given up")
    assert judge.node
    judge.terminate()
    assert judge.exit_code() == 0
    stage.finished()
    assert rows(stage.url, "SELECT status, reason, crash_count FROM windlass_done ORDER BY status") == [
        ("FAILED", "worker_lost", 1),
        ("SUCCEEDED", None, 0),
    ]
    assert stage.programs.ran("mourned") == ["0"]
    assert len(stage.programs.ran("began")) == 1


def test_a_worker_killed_while_it_drains_loses_only_what_still_ran(stage: Stage):
    """J7.6, J7.4: before it hands back, and when all is written and only its row is left."""
    held = stage.app.bind(bodies.hold, 0).using(queue="held").enqueue()
    done = stage.app.bind(bodies.hold, 1).using(queue="done").enqueue()
    first, second = (
        stage.start(f"{point}=kill", [queue])
        for point, queue in (("drain.before_release", "held"), ("drain.before_sign_off", "done"))
    )
    until(lambda: len(stage.programs.ran("began")) == 2, "the bodies to begin")
    first.terminate()
    assert first.exit_code() == KILLED
    stage.programs.open_gate()
    second.terminate()
    assert second.exit_code() == KILLED
    assert done.status() is JobStatus.SUCCEEDED
    stage.finished()
    assert (stage.history(held), stage.history(done)) == (["lost", "succeeded"], ["succeeded"])
    until(lambda: one(stage.url, "SELECT count(*) FROM windlass_node") <= 1, "lost nodes to be forgotten")
