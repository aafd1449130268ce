"""What people do to jobs: the answers and refusals of cancel, pause, resume, retry and replace."""

from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, count, query, settled, until
from tests.support.facts import rows
from windlass import (
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceled,
    JobCanceledError,
    JobHandle,
    JobNotFoundError,
    JobPaused,
    JobResumed,
    JobStateError,
    JobStatus,
    Windlass,
)
from windlass.stores.plans import search

UNKNOWN = "0198c0de-0000-7000-8000-000000000001"
VERBS = ("cancel", "pause", "resume", "retry")


def failed_job(app: Windlass, **options: Any) -> JobHandle[Any]:
    """The handle of a dead letter."""
    handle = app.job(jobs.fail).using(**options).enqueue("broken")
    with app.worker():
        assert handle.join(timeout=LONG) is JobStatus.FAILED
    return handle


def ended_job(app: Windlass) -> JobHandle[Any]:
    handle = app.job(jobs.note).enqueue("fine")
    with app.worker():
        assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
    return handle


# ---------------------------------------------------------------------- cancel


def test_a_waiting_job_is_canceled_once_and_never_runs(app: Windlass):
    """J2.2: True from PENDING, then False: it has ended."""
    handle = app.job(jobs.note).enqueue("never")
    assert (handle.cancel(), handle.cancel()) == (True, False)
    with app.worker():
        assert handle.join(timeout=LONG) is JobStatus.CANCELED
    assert jobs.seen == []
    job = app.get(handle.id)
    assert (job.reason, job.attempts, job.finished_at is not None) == ("canceled", 0, True)
    assert app.history(handle.id) == []


def test_a_paused_job_and_a_paused_dead_letter_can_be_canceled(app: Windlass):
    """J2.2: True from PAUSED, whatever it was paused from."""
    waiting, dead = app.job(jobs.note).enqueue("x"), failed_job(app)
    assert waiting.status() is JobStatus.SUCCEEDED  # the worker that ran the dead letter took it along
    held = app.job(jobs.note).enqueue("y")
    assert (held.pause(), held.cancel(), held.status()) == (True, True, JobStatus.CANCELED)
    assert (dead.pause(), dead.cancel(), dead.status()) == (True, True, JobStatus.CANCELED)
    assert app.get(dead.id).paused_from is None


def test_ended_and_unknown_jobs_cannot_be_moved(app: Windlass):
    """J2.2, J2.3, J2.4: a refusal is False, and changes nothing."""
    handle = ended_job(app)
    before = app.get(handle.id)
    for verb in VERBS:
        assert getattr(app, verb)(handle.id) is False
        assert getattr(app, verb)(UNKNOWN) is False
    assert app.get(handle.id) == before


def test_a_cancel_releases_the_business_key_and_wakes_waits_for_the_result(app: Windlass, apps: Apps):
    """J2.2, J1.5: the key is free at any end, and a handle that waits for the result is woken."""
    handle = app.job(jobs.note).using(business_key="order:7").enqueue("never")
    assert handle.cancel()
    assert count(apps.url, "live_key") == 0
    with pytest.raises(JobCanceledError, match=str(handle.id)):
        handle.result(timeout=LONG)


async def test_every_verb_has_an_async_twin_on_the_handle_and_the_app(app: Windlass):
    """api.md: `acancel`, `apause` … do the same."""
    handle = await app.job(jobs.note).aenqueue("x")
    assert await handle.apause()
    assert await app.aresume(handle.id)
    assert not await handle.aresume()
    assert not await handle.aretry()
    assert not await app.aretry(handle.id)
    assert await app.apause(handle.id)
    assert await app.acancel(handle.id)
    assert not await handle.acancel()
    assert await app.acancel_by_tag("none") == 0
    assert await app.aretry_many() == 0


def test_a_tag_cancels_all_its_live_jobs_and_no_other(app: Windlass):
    """J2.4: `cancel_by_tag` counts what it canceled, or would; it trims and lowers like any tag."""
    tagged = [app.job(jobs.note).using(tags=["Import"]).enqueue(str(n)) for n in range(7)]
    other = app.job(jobs.note).using(tags=["export"]).enqueue("kept")
    tagged[0].cancel()
    assert (app.cancel_by_tag("import", dry_run=True), app.cancel_by_tag(" IMPORT ")) == (6, 6)
    assert {handle.status() for handle in tagged} == {JobStatus.CANCELED}
    assert other.status() is JobStatus.PENDING


async def test_a_tag_cancels_a_dead_letter_that_is_paused(app: Windlass):
    """J2.4, J2.2: it has not ended for good, wherever it is kept; a dry run counts the same and moves nothing."""
    dead, paused = [await app.job(jobs.fail).using(tags=["import"]).aenqueue(str(n)) for n in range(2)]
    async with app.worker():
        for handle in (dead, paused):
            await handle.ajoin(timeout=LONG)
    await paused.apause()
    waiting = await app.job(jobs.note).using(tags=["import"]).aenqueue("x")
    assert await app.acancel_by_tag("import", dry_run=True) == 2
    assert (await paused.astatus(), await waiting.astatus()) == (JobStatus.PAUSED, JobStatus.PENDING)
    assert await app.acancel_by_tag("import") == 2
    assert [await handle.astatus() for handle in (dead, paused, waiting)] == ["FAILED", "CANCELED", "CANCELED"]


# ---------------------------------------------------------------------- pause and resume


def test_a_paused_job_waits_until_it_is_resumed(app: Windlass):
    """J2.3: True from PENDING and, again, from PAUSED; `resume` restores what it was, once."""
    handle = app.job(jobs.note).enqueue("later")
    assert (handle.pause(), handle.pause()) == (True, True)
    job = app.get(handle.id)
    assert (job.status, job.paused_from) == (JobStatus.PAUSED, JobStatus.PENDING)
    with app.worker():
        app.job(jobs.add).enqueue(1, 2).result(timeout=LONG)
        assert handle.status() is JobStatus.PAUSED
        assert (handle.resume(), handle.resume()) == (True, False)
        assert handle.result(timeout=LONG) == "later"


def test_a_resumed_job_keeps_its_due_time(app: Windlass):
    """J2.3: what was due in an hour is due in an hour."""
    handle = app.job(jobs.note).using(delay=3600).enqueue("later")
    due = app.get(handle.id).due_at
    handle.pause()
    handle.resume()
    assert app.get(handle.id).due_at == due


def test_a_running_job_cannot_be_paused(app: Windlass, gate: Gate):
    """J2.3: False, and it goes on."""
    handle = app.job(jobs.hold).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        assert handle.pause() is False
        gate.open()
        assert handle.result(timeout=LONG) == "let go"


def test_a_paused_dead_letter_is_no_dead_letter_until_it_is_resumed(app: Windlass, apps: Apps):
    """J2.3: it holds no business key, is not found among the FAILED, and `retry` is False."""
    handle = failed_job(app, business_key="order:7")
    assert handle.pause()
    assert app.get(handle.id).paused_from is JobStatus.FAILED
    assert count(apps.url, "live_key") == 0
    assert list(app.find(status="FAILED")) == []
    assert [job.id for job in app.find(status="PAUSED")] == [handle.id]
    assert (handle.retry(), app.retry_many()) == (False, 0)
    assert (handle.resume(), handle.status()) == (True, JobStatus.FAILED)
    assert app.get(handle.id).error == "ValueError: broken"


# ---------------------------------------------------------------------- retry


def test_a_dead_letter_starts_over(app: Windlass):
    """J2.4: attempts 0, error cleared, crash budget reset, due now; history keeps what was."""
    handle = failed_job(app, max_retries=1)
    assert (app.get(handle.id).attempts, handle.retry(), handle.retry()) == (2, True, False)
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.error, job.error_class) == (JobStatus.PENDING, 0, None, None)
    assert (job.crash_count, job.reason, job.finished_at) == (0, None, None)
    with app.worker():
        handle.join(timeout=LONG)
    assert [(attempt.number, attempt.outcome) for attempt in app.history(handle.id)] == [
        (1, "retried"), (2, "failed"), (1, "retried"), (2, "failed"),
    ]  # fmt: skip


def test_retry_resets_the_crash_budget(app: Windlass, apps: Apps):
    """J2.4: what a job had crashed before counts no more."""
    handle = failed_job(app)
    rows(apps.url, "UPDATE windlass_done SET crash_count = 2")
    assert (app.get(handle.id).crash_count, handle.retry()) == (2, True)
    assert app.get(handle.id).crash_count == 0


def test_retry_takes_the_business_key_again_or_raises_if_another_job_holds_it(app: Windlass):
    """J1.5: and nothing has changed then."""
    handle = failed_job(app, business_key="order:7")
    holder = app.job(jobs.note).using(business_key="order:7", delay=60).enqueue("holder")
    before = app.get(handle.id)
    with pytest.raises(DuplicateBusinessKeyError, match=f"'order:7' is held by {holder.id}"):
        handle.retry()
    assert app.get(handle.id) == before
    holder.cancel()
    assert handle.retry()
    with pytest.raises(DuplicateBusinessKeyError, match=str(handle.id)):
        app.job(jobs.note).using(business_key="order:7").enqueue("second")


def test_retry_many_takes_those_that_fit_and_no_more_than_asked(app: Windlass):
    """J2.4: filters as in `find`, a limit from 1 to 1,000."""
    fail = app.job(jobs.fail)
    handles = [fail.using(queue="billing" if n % 2 else "mail", tags=[f"t{n}"]).enqueue("x") for n in range(6)]
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
    assert app.retry_many(queue="billing", limit=2) == 2
    assert app.retry_many(tag="t0") == 1
    assert app.retry_many(queue="nothing") == 0
    assert app.retry_many() == 3
    assert {handle.status() for handle in handles} == {JobStatus.PENDING}
    for wrong in (0, 1001, True, "5"):
        with pytest.raises(InvalidOptionError, match="limit must be a whole number from 1 to 1,000"):
            app.retry_many(limit=wrong)  # type: ignore[arg-type]


def test_retry_many_is_all_or_nothing_when_a_key_is_held(app: Windlass):
    """J2.4: one business key that another job holds refuses all of them."""
    fail = app.job(jobs.fail)
    handles = [fail.using(business_key=f"order:{n}").enqueue("x") for n in range(3)]
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
    app.job(jobs.note).using(business_key="order:1", delay=60).enqueue("holder")
    with pytest.raises(DuplicateBusinessKeyError, match="order:1"):
        app.retry_many()
    assert {handle.status() for handle in handles} == {JobStatus.FAILED}


# ---------------------------------------------------------------------- replace


def test_replace_supersedes_a_job_that_has_not_started(app: Windlass, apps: Apps):
    """J2.4: one transaction; the old one names its successor, whose business key may be the same."""
    old = app.job(jobs.note).using(business_key="order:7", delay=60).enqueue("old")
    new = app.replace(old.id, app.job(jobs.note).using(business_key="order:7").bind("new"))
    job = app.get(old.id)
    assert (job.status, job.reason, job.superseded_by) == (JobStatus.CANCELED, "superseded", new.id)
    with app.worker():
        assert new.result(timeout=LONG) == "new"
    assert jobs.seen == ["new"]
    assert query(apps.url, "SELECT count(*) FROM windlass_live_key") == [(0,)]


def test_running_ended_and_unknown_jobs_cannot_be_replaced(app: Windlass, apps: Apps, gate: Gate):
    """J2.4: each has an error that says what to do, and nothing is stored."""
    call = app.job(jobs.note).bind("new")
    ended = ended_job(app)
    running = app.job(jobs.hold).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        before = count(apps.url, "job")
        for job_id, error, says in (
            (ended.id, JobStateError, "it has ended"),
            (running.id, JobStateError, "cancel it, or let it end"),
            (UNKNOWN, JobNotFoundError, "no job has the id"),
        ):
            with pytest.raises(error, match=says):
                app.replace(job_id, call)
        assert count(apps.url, "job") == before
        gate.open()
        assert running.result(timeout=LONG) == "let go"


async def test_the_async_twin_of_replace(app: Windlass):
    """api.md: `areplace`; an idempotency key that is known answers with the first job, and the old one stays."""
    note = app.job(jobs.note)
    first = await note.using(idempotency_key="k", delay=60).aenqueue("first")
    old = await note.using(delay=60).aenqueue("old")
    same = await app.areplace(old.id, note.using(idempotency_key="k").bind("again"))
    assert (same.id, same.duplicate, await old.astatus()) == (first.id, True, JobStatus.PENDING)
    new = await app.areplace(old.id, note.using(delay=60).bind("new"))
    assert (await app.aget(old.id)).superseded_by == new.id


# ---------------------------------------------------------------------- queues and events


def test_no_job_of_a_paused_queue_starts_until_it_is_resumed(app: Windlass):
    """J1.7: for every node, while running; other queues go on."""
    assert (app.pause_queue("mail", create=True), app.pause_queue("mail")) == (True, False)
    held = app.job(jobs.note).using(queue="mail").enqueue("held")
    with app.worker():
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert held.status() is JobStatus.PENDING
        assert (app.resume_queue("mail"), app.resume_queue("mail")) == (True, False)
        assert held.result(timeout=LONG) == "held"


def test_a_queue_paused_under_load_comes_to_rest(app: Windlass):
    """J1.7: within about a second nothing more is claimed from it, whatever waits."""
    note = app.job(jobs.anote)
    app.enqueue_many([note.using(queue="mail").bind(str(n)) for n in range(3000)])
    with app.worker(concurrency=1):
        until(lambda: len(jobs.seen) > 10)
        app.pause_queue("mail")

        def at_rest() -> bool:
            before = len(jobs.seen)
            app.job(jobs.add).enqueue(1, 2).result(timeout=LONG)
            return len(jobs.seen) == before

        until(at_rest)


def test_steering_publishes_events(app: Windlass):
    """J5.8: JobCanceled, JobPaused, JobResumed, after the commit, with the job's facts; a repeat is none."""
    events: list[Any] = []
    for kind in (JobCanceled, JobPaused, JobResumed):
        app.on(kind)(events.append)
    handle = app.job(jobs.note).using(correlation_id="c", queue="mail").enqueue("x")
    for verb in (handle.pause, handle.pause, handle.resume, handle.cancel, handle.cancel):
        verb()
    until(lambda: len(events) == 3)
    assert [type(event) for event in events] == [JobPaused, JobResumed, JobCanceled]
    assert {(event.job_id, event.queue, event.correlation_id) for event in events} == {(handle.id, "mail", "c")}


def test_a_manually_retried_job_can_be_canceled_and_ends_once(app: Windlass):
    """J2.4, J2.2: every state is left exactly once."""
    handle = failed_job(app)
    assert handle.retry()
    assert handle.cancel()
    assert settled(app, handle.id).status is JobStatus.CANCELED
    assert handle.retry() is False


def test_retry_many_looks_on_until_it_has_enough(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """J2.4: however many others have failed since."""
    monkeypatch.setattr(search, "MOST_READ", 100)
    deep = app.job(jobs.fail).using(queue="deep").enqueue("x")
    app.enqueue_many([app.job(jobs.afail).bind("x") for _ in range(400)])
    with app.worker():
        until(lambda: not app.find(status="PENDING").items and not app.find(status="RUNNING").items)
    assert app.retry_many(queue="deep") == 1
    assert deep.status() is JobStatus.PENDING


def test_a_replacement_may_also_supersede_the_holder_of_its_key(app: Windlass):
    """J2.4, J1.5: the job it replaces and the holder of its business key, in one transaction."""
    note = app.job(jobs.note).using(delay=600)
    holder, old = note.using(business_key="order:7").enqueue("holder"), note.enqueue("old")
    new = app.replace(old.id, note.using(business_key="order:7", on_conflict="replace").bind("new"))
    assert [handle.status() for handle in (holder, old, new)] == [JobStatus.CANCELED] * 2 + [JobStatus.PENDING]
    assert {app.get(handle.id).superseded_by for handle in (holder, old)} == {new.id}
