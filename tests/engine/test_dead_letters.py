"""Dead letters and alerts: whichever way a job fails, in the same transaction, published in order."""

from typing import Any
from uuid import UUID

import pytest

from tests.engine import dead_letter_bodies, jobs
from tests.engine.apps import LONG, Apps, Shop, count, everything_stored, until
from tests.support.facts import literal, one, rows
from windlass import (
    AlertRaised,
    DeadLetter,
    DeadLettersSettings,
    Event,
    JobDeadLettered,
    JobFailed,
    JobHandle,
    JobStatus,
    NodeSettings,
    Settings,
    Windlass,
)
from windlass.domain.clock import VirtualClock
from windlass.domain.dead_letter import REASONS
from windlass.testing import drain

HOUR = 3600
IMPATIENT = Settings(node=NodeSettings(crash_budget=0, recovery_interval=0.05, unknown_target_after=0))
NEWER = """
from windlass import Windlass
app = Windlass({url!r})
@app.job
def fresh(number: int) -> int:
    return number
"""


def dead(app: Windlass, *handles: JobHandle[Any]) -> list[DeadLetter]:
    """Have a worker end these jobs, and give their dead letters."""
    with app.worker():
        for handle in handles:
            assert handle.join(timeout=LONG) is JobStatus.FAILED
    return [app.dead_letters.get(handle.id) for handle in handles]


def test_the_envelope_has_every_field_of_the_specification(app: Windlass):
    """P6.1, J5.4: the same envelope serves plain jobs."""
    fail = app.job(max_retries=2)(jobs.fail)
    handle = fail.using(idempotency_key="i7", correlation_id="c7", queue="pay").enqueue("order 7 is lost")
    (letter,) = dead(app, handle)
    assert letter.envelope() == {
        "tenantId": "default",
        "executionId": str(handle.id),
        "executionKey": "i7",
        "transitionKey": f"{handle.id}:0:3",
        "correlationId": "c7",
        "resourceType": "job",
        "resourceName": fail.target,
        "transport": app.database.dialect.name,
        "platform": "python",
        "terminalStatus": "FAILED",
        "createdAtEpochMs": letter.created_at_epoch_ms,
        "terminalReason": "retry_exhausted",
        "errorCode": "ValueError",
        "errorMessage": "ValueError: order 7 is lost",
        "retryable": True,
        "retriesObserved": 2,
        "traceback": app.history(handle.id)[-1].traceback,
        "host": letter.host,
        "definitionHash": None,
    }
    assert (letter.job_id, len(letter.fingerprint), bool(letter.host)) == (handle.id, 16, True)
    finished = app.get(handle.id).finished_at
    assert finished is not None
    assert abs((letter.created_at - finished).total_seconds()) < LONG


def test_every_kind_of_final_failure_stores_a_dead_letter(apps: Apps):
    """J5.4, P6.1: an error, a mark, a timeout, arguments that fit no more, and a target that is denied."""
    app, strict = apps(), apps()
    strict.job(jobs.add)
    raise_it, slow = app.job(jobs.raise_it), app.job(timeout=0.05)(jobs.sleep_long)
    damaged = app.job(jobs.length).enqueue("x")
    rows(apps.url, f"UPDATE windlass_job SET args = '[[1, 2], {{}}]' WHERE id = {literal(apps.url, damaged.id)}")
    found = dead(app, raise_it.enqueue("plain"), raise_it.enqueue("cause"), slow.enqueue(), damaged)
    found += dead(strict, app.job(jobs.note).enqueue("x"))
    assert [(letter.terminal_reason, letter.error_code) for letter in found] == [
        ("retry_exhausted", "ValueError"),
        ("non_retryable", "ValueError"),
        ("retry_exhausted", "JobTimeoutError"),
        ("poison_payload", "SerializationError"),
        ("target_not_allowed", "TargetNotAllowedError"),
    ]
    assert [letter.retryable for letter in found] == [True, False, True, False, False]
    assert count(apps.url, "dead_letter") == len(found)
    assert {letter.first_action for letter in found} == {
        REASONS[letter.terminal_reason].first_action for letter in found
    }


def test_jobs_that_fail_outside_of_any_attempt_store_a_dead_letter_too(apps: Apps, shop: Shop):
    """J5.4, J5.8, J6.3, J7.4: a spent crash budget, and an unknown target; published like any other."""
    module = shop.load(NEWER.format(url=apps.url))
    unknown = module.fresh.enqueue(7)
    module.app.close()
    shop.unload()
    app = apps(settings=IMPATIENT)
    events: list[Any] = []
    app.on(Event)(events.append)
    lost = app.job(jobs.add).enqueue(1, 2)
    claimed = "UPDATE windlass_hot SET status = 'RUNNING', node = 'web-2-7-abcd', fence = 1, picked_at = 1"
    rows(apps.url, f"{claimed} WHERE id = {literal(apps.url, lost.id)}")
    found = dead(app, app.handle(unknown.id), lost)
    assert [(letter.terminal_reason, letter.error_code) for letter in found] == [
        ("target_not_found", "TargetNotFoundError"),
        ("worker_lost", "WorkerLostError"),
    ]
    assert found[1].host == "web-2"
    for letter in found:
        kinds = [type(event) for event in events if event.job_id == letter.job_id]
        assert kinds == [JobFailed, JobDeadLettered, AlertRaised]
        assert {event.error_hash for event in events if isinstance(event, AlertRaised)} >= {letter.fingerprint}


def test_an_outcome_that_the_database_refuses_is_a_dead_letter(apps: Apps):
    """J5.4: `poison_payload`, in an envelope that it does not refuse."""
    app = apps(serializer=dead_letter_bodies.Unstorable())
    (letter,) = dead(app, app.job(jobs.note).enqueue("bad"))
    assert (letter.terminal_reason, letter.error_code) == ("poison_payload", "StoreDataError")


def test_errors_are_kept_without_their_secrets(app: Windlass, apps: Apps):
    """J5.3, J5.4: in the envelope, the group, the alert and the events."""
    events: list[Any] = []
    app.on(AlertRaised)(events.append)
    (letter,) = dead(app, app.job(jobs.raise_it).enqueue("secrets"))
    assert "[REDACTED]" in letter.error_message
    (group,), (alert,) = app.dead_letters.groups(), app.alerts.find()
    assert group.sample == alert.sample == letter.error_message
    until(lambda: events)
    assert jobs.SECRET not in everything_stored(apps.url) + repr(events) + repr(letter)


def test_class_names_longer_than_an_index_entry_are_stored(app: Windlass):
    """J5.4: a class may be called whatever its author likes."""
    (letter,) = dead(app, app.job(dead_letter_bodies.raise_a_long_name).enqueue())
    assert len(letter.error_code) == 500


# ---------------------------------------------------------------------- alerts


def two_nodes(apps: Apps) -> tuple[VirtualClock, Windlass, Windlass]:
    """Two applications on one store and one clock that stands still."""
    clock = VirtualClock()
    first, second = apps(clock=clock), apps(clock=clock)
    for node in (first, second):
        node.job(jobs.fail)
        node.job(jobs.raise_it)
    return clock, first, second


def fail_on(app: Windlass, message: str = "no 1") -> UUID:
    handle = app.bind(jobs.fail, message).enqueue()
    assert drain(app).failed == 1
    return handle.id


def test_an_alert_is_raised_once_an_hour_by_whichever_node(apps: Apps):
    """J5.4, J5.8: AlertRaised after the first JobDeadLettered of the hour; further ones only count."""
    clock, first, second = two_nodes(apps)
    events: list[Any] = []
    for node in (first, second):
        node.on(JobDeadLettered)(events.append)
        node.on(AlertRaised)(events.append)
    one_id, two_id = fail_on(first, "no 1"), fail_on(second, "no 2")
    clock.advance(HOUR / 2)
    three_id = fail_on(first, "no 3")
    clock.advance(HOUR / 2)
    four_id = fail_on(second, "no 4")
    until(lambda: len(events) == 6)
    kinds = [(type(event), event.job_id) for event in events]
    assert kinds == [
        (JobDeadLettered, one_id),
        (AlertRaised, one_id),
        (JobDeadLettered, two_id),
        (JobDeadLettered, three_id),
        (JobDeadLettered, four_id),
        (AlertRaised, four_id),
    ]
    newest, oldest = first.alerts.find()
    assert (oldest.count, oldest.first_job_id, oldest.last_job_id) == (3, one_id, three_id)
    assert (newest.count, newest.first_job_id, newest.first_at) == (1, four_id, clock.now())
    assert (oldest.target, oldest.error_class, oldest.sample) == (
        "tests.engine.jobs:fail",
        "ValueError",
        "ValueError: no 1",
    )
    assert newest.error_hash == oldest.error_hash == events[0].fingerprint


def test_another_target_or_another_error_is_another_alert(apps: Apps):
    """J5.4: the hash is that of target, class and shape of the message."""
    _, first, second = two_nodes(apps)
    fail_on(first, "order 1 is lost")
    fail_on(second, "order 2 is lost")
    fail_on(second, "no address")
    first.bind(jobs.raise_it, "plain").enqueue()
    drain(first)
    assert sorted(alert.count for alert in second.alerts.find()) == [1, 1, 2]


def test_the_window_is_a_setting(apps: Apps):
    """J5.4: `dead_letters.alert_window`."""
    clock = VirtualClock()
    app = apps(clock=clock, settings=Settings(dead_letters=DeadLettersSettings(alert_window=60)))
    app.job(jobs.fail)
    for _ in range(3):
        fail_on(app)
        clock.advance(60)
    assert [alert.count for alert in app.alerts.find()] == [1, 1, 1]


def test_a_job_that_fails_again_within_the_hour_is_counted_again(apps: Apps):
    """J5.4: a retry takes the dead letter away, and not the alert."""
    clock, app, _ = two_nodes(apps)
    job = fail_on(app)
    clock.advance(60)
    assert app.retry(job)
    assert (app.dead_letters.find().items, [alert.count for alert in app.alerts.find()]) == ([], [1])
    assert drain(app).failed == 1
    assert [alert.count for alert in app.alerts.find()] == [2]
    (letter,) = app.dead_letters.find()
    assert letter.created_at == clock.now()


def test_two_workers_that_fail_at_the_same_time_raise_one_alert(apps: Apps):
    """J5.4: two hundred deaths on two live nodes: no count is lost, one alert, one event."""
    events: list[Any] = []
    nodes = [apps(), apps()]
    for node in nodes:
        node.job(jobs.afail)
        node.on(AlertRaised)(events.append)
    with nodes[0].worker(concurrency=5), nodes[1].worker(concurrency=5):
        nodes[0].enqueue_many([nodes[0].bind(jobs.afail, f"no {n}") for n in range(200)])
        until(lambda: count(apps.url, "done") == 200)
    (alert,), (group,) = nodes[0].alerts.find(), nodes[0].dead_letters.groups()
    assert (alert.count, group.count, len(events)) == (200, 200, 1)
    assert one(apps.url, "SELECT sum(raised) FROM windlass_dead_letter") == 1


@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_a_job_canceled_or_paused_before_it_ran_is_not_a_dead_letter(app: Windlass, verb: str):
    """J5.4: FAILED jobs alone are."""
    handle = app.job(jobs.fail).enqueue("x")
    assert getattr(handle, verb)()
    assert (app.dead_letters.find().items, app.alerts.find().items) == ([], [])
