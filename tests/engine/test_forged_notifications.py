"""A notification is only a hint: roles without a right on any table may send one on every channel."""

import logging
from collections.abc import Iterator

import psycopg
import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, until
from windlass import JobStatus
from windlass.stores.channels import WORK
from windlass.worker import Worker

CHANNELS = ("windlass_work", "windlass_done", "windlass_canceled")


def payloads(job_id: str) -> list[str]:
    """What an attacker may send: ids, wrong payloads in our format, and junk of every length that is accepted."""
    return [
        *("", job_id, f"{job_id},{job_id}", f"x {job_id}", f"done {job_id}", "*", "x *", ",", " ", "no id at all"),
        *("x default:99999", "x default:-1", "x default:" + "9" * 7_000, "x default:٣", "x :2", "x nowhere:2"),
        *("\x1b[31m", "ä" * 3_900, "x" * 7_999, ",".join([job_id] * 200)),
    ]


def forge(url: str, channels: tuple[str, ...], words: list[str]) -> None:
    with psycopg.connect(url, autocommit=True) as stranger:
        for channel in channels:
            for word in words:
                stranger.execute("SELECT pg_notify(%s, %s)", (channel, word))


@pytest.fixture
def apps(empty_postgres: str) -> Iterator[Apps]:
    made = Apps(empty_postgres)
    yield made
    made.close()


def understood(worker: Worker, apps: Apps) -> None:
    """Wait until the node has received all notifications, which arrive in order, and has polled once more."""
    assert apps().job(jobs.add).enqueue(1, 1).result(timeout=LONG) == 2  # it never polls: it was notified of this one
    assert worker.node is not None
    looked = worker.node.engine.cancellations.signals.ticked
    looked.arm()
    forge(apps.url, ("windlass_canceled",), [""])
    looked.wait_sync(LONG)
    looked.disarm()


@pytest.mark.parametrize("channel", CHANNELS)
def test_forged_notifications_neither_end_nor_repeat_a_body(
    apps: Apps, gate: Gate, channel: str, caplog: pytest.LogCaptureFixture
):
    """J3.6: its result is committed once, with one history row; and no service of the node fails over them."""
    app = apps(settings=ONLY_WAKEUPS)
    app.job(jobs.add)
    with app.worker() as worker:
        handle = app.job(jobs.hold).enqueue(gate.name)
        gate.wait_entered()
        forge(apps.url, (channel,), payloads(str(handle.id)))
        understood(worker, apps)
        assert handle.status() is JobStatus.RUNNING
        gate.open()
        assert handle.result(timeout=LONG) == "let go"
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["succeeded"]
    assert app.get(handle.id).attempts == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_forged_cancel_does_not_reach_a_coroutine(apps: Apps, gate: Gate):
    """J3.6: the same for a body on the loop, which a cancel would end at once."""
    app = apps(settings=ONLY_WAKEUPS)
    app.job(jobs.add)
    with app.worker() as worker:
        handle = app.job(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        forge(apps.url, CHANNELS, payloads(str(handle.id)))
        understood(worker, apps)
        gate.open()
        assert handle.result(timeout=LONG) == "let go"
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["succeeded"]


def test_a_forged_cancel_of_a_job_that_waits_does_not_keep_it_from_beginning(apps: Apps):
    """J3.6: a cancel may overtake the answer to a claim, so ids are remembered; the store is asked for these, too."""
    app = apps(settings=ONLY_WAKEUPS)
    app.job(jobs.add)
    with app.worker() as worker:
        handle = app.job(jobs.add).using(delay=0.3).enqueue(1, 2)
        forge(apps.url, ("windlass_canceled",), [str(handle.id)])
        understood(worker, apps)
        assert handle.result(timeout=LONG) == 3
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["succeeded"]


def test_a_cancel_among_forged_ones_reaches_its_job(apps: Apps, gate: Gate):
    """J2.2, J3.6: of the ids in one notification those stop that the store says are canceled, and no others."""
    app, other = apps(settings=ONLY_WAKEUPS), apps()
    app.job(jobs.add)
    holding, canceled = Gate(), gate
    jobs.GATES[holding.name] = holding
    with app.worker():
        kept, gone = app.job(jobs.hold).enqueue(holding.name), app.job(jobs.ahold).enqueue(canceled.name)
        for body in (holding, canceled):
            body.wait_entered()
        forge(apps.url, ("windlass_canceled",), [f"{kept.id},{gone.id}"])
        assert other.cancel(gone.id)
        until(lambda: app._worker and app._worker.node and app._worker.node.slots.running == 1)
        holding.open()
        assert kept.result(timeout=LONG) == "let go"
    assert app.get(gone.id).status is JobStatus.CANCELED


def test_an_unknown_notification_payload_is_ignored(empty_postgres: str):
    """J3.6: every role may NOTIFY; wakeups still work."""
    apps = Apps(empty_postgres)
    app, other = apps(settings=ONLY_WAKEUPS), apps()
    add = app.job(jobs.add)
    with app.worker():
        with psycopg.connect(empty_postgres, autocommit=True) as connection:
            for payload in ("someone else", "", "x:y", "*"):
                connection.execute("SELECT pg_notify(%s, %s)", (WORK, payload))
        assert other.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert add.enqueue(2, 2).result(timeout=LONG) == 4
    apps.close()
