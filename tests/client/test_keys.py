"""Idempotency keys, which are for ever, and business keys, which are as long as the job lives."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, count, settled
from windlass import DuplicateBusinessKeyError, JobStatus, Windlass


def test_an_idempotency_key_stores_only_one_job_ever(app: Windlass, apps: Apps):
    """J1.4: the second time the first job's handle comes back, marked, and nothing is stored; also after its end."""
    note = app.job(jobs.note).using(idempotency_key="order-7")
    first, second = note.enqueue("first"), note.enqueue("second")
    assert (first.duplicate, second.duplicate) == (False, True)
    assert first.id == second.id
    with app.worker():
        assert second.result(timeout=LONG) == "first"
    third = apps().job(jobs.note).using(idempotency_key="order-7").enqueue("third")
    assert (third.id, third.duplicate, third.result(timeout=LONG)) == (first.id, True, "first")
    assert count(apps.url, "job") == 1
    assert "duplicate=True" in repr(third)


async def test_the_async_twin_marks_duplicates_too(app: Windlass):
    """J1.4: `aenqueue` alike."""
    note = app.job(jobs.note).using(idempotency_key="order-7")
    first, second = await note.aenqueue("first"), await note.aenqueue("second")
    assert (second.id, second.duplicate) == (first.id, True)


def test_the_idempotency_key_is_looked_at_before_the_business_key(app: Windlass):
    """J1.5: a repeat returns the first job even while that job holds the business key."""
    note = app.job(jobs.note).using(idempotency_key="i", business_key="b")
    first, again = note.enqueue("first"), note.enqueue("again")
    assert (again.id, again.duplicate) == (first.id, True)


def test_a_held_business_key_raises_and_names_the_holder(app: Windlass, apps: Apps):
    """J1.5: the default policy; nothing is stored."""
    note = app.job(jobs.note).using(business_key="order:7")
    first = note.enqueue("first")
    with pytest.raises(DuplicateBusinessKeyError, match=f"'order:7' is held by {first.id}") as caught:
        note.enqueue("second")
    assert (caught.value.key, caught.value.holder) == ("order:7", first.id)
    assert count(apps.url, "job") == 1


def test_a_held_business_key_may_return_the_holder(app: Windlass):
    """J1.5: `return_existing`: pending or running, the holder answers."""
    note = app.job(jobs.note).using(business_key="order:7", on_conflict="return_existing")
    first, second = note.enqueue("first"), note.enqueue("second")
    assert (second.id, second.duplicate) == (first.id, True)
    with app.worker():
        assert second.result(timeout=LONG) == "first"
    third = note.enqueue("third")
    assert (third.id != first.id, third.duplicate) == (True, False)


def test_a_holder_that_has_not_started_may_be_replaced(app: Windlass):
    """J1.5: `replace`: the old one is CANCELED as superseded and names its successor; it never runs."""
    note = app.job(jobs.note).using(business_key="order:7", on_conflict="replace")
    old, new = note.enqueue("old"), note.enqueue("new")
    replaced = app.get(old.id)
    assert (replaced.status, replaced.reason, replaced.superseded_by) == (JobStatus.CANCELED, "superseded", new.id)
    assert new.duplicate is False
    with app.worker():
        assert new.result(timeout=LONG) == "new"
    assert jobs.seen == ["new"]
    assert app.history(old.id) == []


def test_a_running_holder_is_not_replaced(app: Windlass, gate: Gate):
    """J1.5: a running one raises; once it is over the key is free."""
    hold = app.job(jobs.hold).using(business_key="order:7", on_conflict="replace")
    with app.worker():
        first = hold.enqueue(gate.name)
        gate.wait_entered()
        with pytest.raises(DuplicateBusinessKeyError, match=str(first.id)):
            hold.enqueue(gate.name)
        gate.open()
        assert first.result(timeout=LONG) == "let go"
        assert hold.enqueue(gate.name).result(timeout=LONG) == "let go"


def test_a_business_key_is_free_again_at_every_end(app: Windlass, apps: Apps):
    """J1.5: after success, after failure, after being denied; while a retry waits it is held."""
    note, fail = app.job(jobs.note), app.job(jobs.fail)
    denied = apps()
    with app.worker():
        for job in (note, fail, note):
            assert settled(app, job.using(business_key="order:7").enqueue("x").id).finished_at is not None
    stranger = app.job(jobs.add).using(business_key="order:7").enqueue(1, 2)
    denied.job(jobs.note)
    with denied.worker():
        assert settled(denied, stranger.id).reason == "target_not_allowed"
    assert note.using(business_key="order:7").enqueue("free").duplicate is False
    assert count(apps.url, "live_key") == 1


def test_a_waiting_retry_holds_its_business_key(app: Windlass):
    """J1.5: live means PENDING, RUNNING, PAUSED, WAITING."""
    flaky = app.job(max_retries=1)(jobs.fail_at_first).using(business_key="order:7", on_conflict="return_existing")
    with app.worker():
        handle = flaky.enqueue("once")
        assert handle.result(timeout=LONG) == 2
    assert flaky.enqueue("free").duplicate is False


@pytest.mark.parametrize("option", ["idempotency_key", "business_key"])
def test_concurrent_enqueues_with_one_key_store_one_job(apps: Apps, option: str):
    """J1.4, J1.5: across threads and applications; the others are answered with the winner."""
    together = Barrier(12)
    makers = [apps().job(jobs.note) for _ in range(3)]
    options = {option: "order:7", "on_conflict": "return_existing"}

    def enqueue(n: int) -> tuple[object, bool]:
        together.wait(LONG)
        handle = makers[n % 3].using(**options).enqueue(str(n))  # type: ignore[arg-type]
        return handle.id, handle.duplicate

    with ThreadPoolExecutor(12) as pool:
        placed = list(pool.map(enqueue, range(12)))
    assert len({job_id for job_id, _ in placed}) == 1
    assert sorted(duplicate for _, duplicate in placed) == [False] + [True] * 11
    assert count(apps.url, "job") == 1


def test_bulk_submission_marks_duplicates_in_place(app: Windlass, apps: Apps):
    """J1.4: against what is stored, and against what stands earlier in the same list."""
    note = app.job(jobs.note)
    first = note.using(idempotency_key="a").enqueue("stored")
    calls = [note.using(idempotency_key=key).bind(key) for key in ("a", "b", "b", "c")]
    handles = app.enqueue_many([*calls, note.bind("plain")])
    assert [handle.duplicate for handle in handles] == [True, False, True, False, False]
    assert handles[0].id == first.id
    assert handles[1].id == handles[2].id
    assert count(apps.url, "job") == 4


def test_bulk_submission_with_a_conflict_stores_nothing(app: Windlass, apps: Apps):
    """J1.5: all or none, also when two of the same list want one key."""
    note = app.job(jobs.note)
    with pytest.raises(DuplicateBusinessKeyError):
        app.enqueue_many([note.bind("fine"), *(note.using(business_key="b").bind(str(n)) for n in range(2))])
    assert [count(apps.url, table) for table in ("job", "hot", "live_key")] == [0, 0, 0]


def test_bulk_submission_may_replace_within_itself(app: Windlass):
    """J1.5: the last of several that replace each other is the one that runs."""
    note = app.job(jobs.note).using(business_key="b", on_conflict="replace")
    handles = app.enqueue_many([note.bind(str(n)) for n in range(3)])
    assert [handle.status() for handle in handles] == [JobStatus.CANCELED, JobStatus.CANCELED, JobStatus.PENDING]
    with app.worker():
        assert handles[2].result(timeout=LONG) == "2"
    assert jobs.seen == ["2"]
