"""Crash matrix: a worker dies around the commit of an outcome."""

from tests.crash.programs import bodies
from tests.support.crashing import Stage
from tests.support.facts import one, rows, statuses
from windlass import Backoff, JobStatus

BEFORE_THE_COMMIT = (
    "run.after_body",
    "completer.before_write",
    "completer.written",
    "completer.before_commit",
)
FOLLOWERS = "SELECT count(*) FROM windlass_job WHERE parent_id IS NOT NULL"


def test_a_body_whose_outcome_was_not_committed_runs_again_and_ends_once(stage: Stage):
    """P9.C1, P9.C4, J4.3, J4.4, J6.2: its effects repeat, under the same effect key and with a higher fence.

    What it held of a resource is held until its node is found lost, and then given back once.
    """
    stage.app.configure_resource("stripe", len(BEFORE_THE_COMMIT))
    victims = stage.killed_at(
        {
            point: stage.app.bind(bodies.pay, n).using(on_success=bodies.follow, resource="stripe")
            for n, point in enumerate(BEFORE_THE_COMMIT)
        }
    )
    assert {victim.job.status() for victim in victims} == {JobStatus.RUNNING}
    assert one(stage.url, "SELECT count(*) FROM windlass_attempt") == one(stage.url, FOLLOWERS) == 0
    assert [resource.in_use for resource in stage.app.resources()] == [len(victims)]
    stage.finished()
    ran = stage.programs.ran
    for number, victim in enumerate(victims):
        assert stage.history(victim.job) == ["lost", "succeeded"], victim.point
        job = stage.app.get(victim.job.id)
        assert (job.attempts, job.crash_count, job.result) == (1, 1, number)
        assert len(ran(f"effect-{number}")) == 2
        assert len(set(ran(f"effect-{number}"))) == 1
        assert ran(f"fence-{number}") == ["1", "3"]
        assert ran("followed").count(str(number)) == 1
    assert len({key for number in range(len(victims)) for key in ran(f"effect-{number}")}) == len(victims)
    assert statuses(stage.url) == {"SUCCEEDED": 2 * len(victims)}


def test_follow_ups_of_a_committed_outcome_start_without_a_notification(stage: Stage):
    """P9.C2, J4.3, J5.5: the job is not called again, its callback is run by the next node that polls."""
    call = stage.app.bind(bodies.pay, 7).using(on_success=bodies.follow)
    (victim,) = stage.killed_at({"completer.after_commit": call})
    assert victim.job.status() is JobStatus.SUCCEEDED
    assert one(stage.url, FOLLOWERS) == 1
    stage.in_order()
    stage.finished()
    assert (stage.programs.ran(), stage.programs.ran("followed")) == (["7"], ["7"])
    assert stage.history(victim.job) == ["succeeded"]
    assert statuses(stage.url) == {"SUCCEEDED": 2}


def test_a_retry_spends_its_attempt_with_its_commit_and_waits_for_its_time(stage: Stage):
    """P9.C3, J2.5, J5.2: killed before it, the attempt is not consumed; after it, it is, once, and due is due."""
    stubborn = stage.app.bind(bodies.fail_until, 0, 2).using(max_retries=1, backoff=Backoff.fixed(2))
    patient = stage.app.bind(bodies.fail_until, 1, 2).using(max_retries=1, backoff=Backoff.fixed(6))
    before, after = stage.killed_at({"retry.before_commit": stubborn, "retry.after_commit": patient})
    lost, kept = stage.app.get(before.job.id), stage.app.get(after.job.id)
    assert (lost.status, lost.attempts) == (JobStatus.RUNNING, 0)
    assert (kept.status, kept.attempts, kept.error_class) == (JobStatus.PENDING, 1, "ConnectionError")
    assert stage.history(after.job) == ["retried"]
    assert kept.due_at is not None
    stage.finished()
    assert stage.history(before.job) == ["lost", "retried", "succeeded"]
    assert stage.history(after.job) == ["retried", "succeeded"]
    assert stage.programs.ran("attempt-0") == ["1", "1", "2"]
    assert stage.programs.ran("attempt-1") == ["1", "2"]
    ends = [stage.app.get(victim.job.id) for victim in (before, after)]
    assert [(job.attempts, job.crash_count) for job in ends] == [(2, 1), (2, 0)]
    second = stage.app.history(after.job.id)[1]
    assert second.picked_at is not None
    assert second.picked_at >= kept.due_at


def test_a_final_failure_is_stored_with_all_its_follow_ups_or_not_at_all(stage: Stage):
    """P9.C6, J5.4, J5.5: state, error, reason, history, key and callback stand or fall together."""
    calls = {
        point: stage.app.bind(bodies.wordless, n).using(business_key=f"order-{n}", on_failure=bodies.mourn)
        for n, point in enumerate(("dead_letter.before_commit", "dead_letter.after_commit"))
    }
    before, after = stage.killed_at(calls)
    assert (before.job.status(), after.job.status()) == (JobStatus.RUNNING, JobStatus.FAILED)
    assert (stage.history(before.job), stage.history(after.job)) == ([], ["failed"])
    assert rows(stage.url, "SELECT business_key FROM windlass_live_key") == [("order-0",)]
    assert one(stage.url, FOLLOWERS) == 1
    dead = stage.app.get(after.job.id)
    assert (dead.error, dead.reason, dead.attempts) == ("ValueError", "retry_exhausted", 1)
    stage.finished()
    assert stage.app.get(after.job.id) == dead
    assert stage.history(before.job) == ["lost", "failed"]
    assert sorted(stage.programs.ran()) == ["0", "0", "1"]
    assert sorted(stage.programs.ran("mourned")) == ["0", "1"]
    assert statuses(stage.url) == {"FAILED": 2, "SUCCEEDED": 2}
