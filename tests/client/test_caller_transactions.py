"""Enqueueing in the caller's own transaction: the same sentences for every kind of connection that blocks."""

import pytest

from tests.client.callers import NOTHING, ONE, Lending
from tests.engine import jobs
from tests.engine.apps import count, query
from windlass import DuplicateBusinessKeyError, JobNotFoundError, JobStatus, PayloadTooLargeError

EVERYTHING = {"idempotency_key": "i", "business_key": "b", "tags": ["t"], "queue": "new"}
"""Options that make an enqueue write a row into every table it can write to."""


def test_a_rollback_leaves_nothing(lending: Lending):
    """api.md Submitting: neither the job nor its keys and tags, nor the queue it was the first in."""
    note = lending.apps().job(jobs.note).using(**EVERYTHING)  # type: ignore[arg-type]
    with lending.rolled_back() as caller:
        caller.execute("INSERT INTO orders (id) VALUES (1)")
        note.using(connection=caller.connection).enqueue("never")
    assert lending.counts() == NOTHING
    assert lending.orders() == 0


def test_a_commit_leaves_one_row(lending: Lending):
    """api.md Submitting: others see the job only after the commit. The handle comes at once."""
    app = lending.apps()
    note = app.job(jobs.note).using(**EVERYTHING)  # type: ignore[arg-type]
    with lending.transaction() as caller:
        caller.execute("INSERT INTO orders (id) VALUES (1)")
        handle = note.using(connection=caller.connection).enqueue("kept")
        assert handle.duplicate is False
        with pytest.raises(JobNotFoundError):
            handle.status()
        assert (lending.counts(), lending.orders()) == (NOTHING, 0)
    assert (lending.counts(), lending.orders()) == (ONE, 1)
    assert handle.status() is JobStatus.PENDING
    job = app.get(handle.id)
    assert (job.args, job.queue, job.tags, job.business_key) == (("kept",), "new", ("t",), "b")


def test_a_transaction_may_begin_with_the_enqueue(lending: Lending):
    """api.md Submitting: the first statement of the transaction is ours, and still it is the caller's to end."""
    note = lending.apps().job(jobs.note)
    with lending.rolled_back() as caller:
        note.using(connection=caller.connection).enqueue("never")
    assert lending.counts() == NOTHING
    with lending.transaction() as caller:
        note.using(connection=caller.connection).enqueue("kept")
        assert count(lending.url, "job") == 0
    assert count(lending.url, "job") == count(lending.url, "hot") == 1


def test_an_idempotency_key_holds_in_the_transaction_and_after_it(lending: Lending):
    """J1.4: a repeat is marked, whether the first one was committed or is in the same transaction."""
    note = lending.apps().job(jobs.note).using(idempotency_key="order-7")
    with lending.transaction() as caller:
        first = note.using(connection=caller.connection).enqueue("first")
        second = note.using(connection=caller.connection).enqueue("second")
    with lending.transaction() as caller:
        third = note.using(connection=caller.connection).enqueue("third")
    fourth = note.enqueue("fourth")
    assert {first.id, second.id, third.id, fourth.id} == {first.id}
    assert [handle.duplicate for handle in (first, second, third, fourth)] == [False, True, True, True]
    assert count(lending.url, "job") == 1


def test_business_keys_conflict_by_every_policy(lending: Lending):
    """J1.5: raise, return_existing and replace, against what is stored and what this transaction stores."""
    app = lending.apps()
    note = app.job(jobs.note).using(business_key="order:7")
    stored = note.enqueue("stored")
    with lending.transaction() as caller:
        mine = note.using(connection=caller.connection)
        with pytest.raises(DuplicateBusinessKeyError, match=str(stored.id)):
            mine.enqueue("refused")
        same = mine.using(on_conflict="return_existing").enqueue("not needed")
        assert (same.id, same.duplicate) == (stored.id, True)
        newer = mine.using(on_conflict="replace").enqueue("newer")
        newest = mine.using(on_conflict="replace").enqueue("newest")
    assert [app.get(handle.id).superseded_by for handle in (stored, newer, newest)] == [newer.id, newest.id, None]
    assert newest.status() is JobStatus.PENDING
    assert (count(lending.url, "hot"), count(lending.url, "live_key")) == (1, 1)


def test_a_refused_call_leaves_the_transaction_usable(lending: Lending):
    """api.md Errors: bad input changes nothing, not even a queue that was new; what the caller wrote stands."""
    note = lending.apps().job(jobs.note).using(business_key="order:7")
    note.enqueue("stored")
    with lending.transaction() as caller:
        caller.execute("INSERT INTO orders (id) VALUES (1)")
        mine = note.using(connection=caller.connection)
        with pytest.raises(DuplicateBusinessKeyError):
            mine.using(queue="new").enqueue("refused")
        with pytest.raises(PayloadTooLargeError):
            mine.using(business_key=None).enqueue("x" * 200_000)
        caller.execute("INSERT INTO orders (id) VALUES (2)")
        mine.using(business_key=None).enqueue("fine")
    assert lending.orders() == 2
    assert count(lending.url, "job") == 2
    assert query(lending.url, "SELECT name FROM windlass_queue") == [("default",)]


def test_many_calls_share_the_transaction(lending: Lending):
    """api.md Submitting: `enqueue_many`, handles in order, duplicates marked, all or none."""
    app = lending.apps()
    note = app.job(jobs.note)
    with lending.rolled_back() as caller:
        mine = note.using(connection=caller.connection)
        app.enqueue_many([mine.bind(str(number)) for number in range(1_200)])
    assert lending.counts() == NOTHING
    with lending.transaction() as caller:
        mine = note.using(connection=caller.connection)
        calls = [mine.bind(str(number)) for number in range(1_200)]
        twice = [mine.using(idempotency_key="k").bind("k") for _ in range(2)]
        handles = app.enqueue_many([*calls, *twice])
        with pytest.raises(DuplicateBusinessKeyError):
            app.enqueue_many([mine.using(business_key="b").bind(str(number)) for number in range(2)])
    assert [app.get(handle.id).args for handle in handles[::400]] == [("0",), ("400",), ("800",), ("k",)]
    assert [handle.duplicate for handle in handles[-2:]] == [False, True]
    assert count(lending.url, "job") == count(lending.url, "hot") == 1_201
    assert count(lending.url, "live_key") == 0


def test_a_new_queue_is_not_taken_for_known_when_the_caller_rolls_back(lending: Lending):
    """J1.7: the next job in it makes it known, and is found."""
    app = lending.apps()
    note = app.job(jobs.note).using(queue="new")
    with lending.rolled_back() as caller:
        note.using(connection=caller.connection).enqueue("never")
    note.enqueue("found")
    assert query(lending.url, "SELECT name FROM windlass_queue") == [("new",)]
