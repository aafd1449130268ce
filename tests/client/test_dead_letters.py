"""`app.dead_letters` and `app.alerts`: looking, grouping, starting over in bounded batches, forgetting."""

import inspect
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count, query, until
from tests.engine.dead_letter_bodies import BROKEN, ship
from windlass import (
    InvalidOptionError,
    JobHandle,
    JobNotFoundError,
    JobStateError,
    JobStatus,
    Redrive,
    Windlass,
)
from windlass.client.dead_letters import Alerts, DeadLetters
from windlass.domain.clock import VirtualClock, monotonic
from windlass.testing import drain

DAY = 86_400
UNKNOWN = "0198c0de-0000-7000-8000-000000000001"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(apps: Apps, clock: VirtualClock) -> Windlass:
    """An application by a clock that stands still, with a job that fails while its order is broken."""
    app = apps(clock=clock)
    app.job(ship)
    app.job(jobs.fail)
    return app


@pytest.fixture(autouse=True)
def _reset_failures() -> Iterator[None]:
    yield
    BROKEN.clear()


def failed(app: Windlass, number: int = 1, **options: Any) -> list[JobHandle[str]]:
    """Dead letters, by orders that are broken from now on."""
    start = len(BROKEN)
    BROKEN.update(range(start, start + number))
    handles = app.enqueue_many([app.bind(ship, start + n).using(**options) for n in range(number)])
    assert drain(app).failed == number
    return handles


def ids(*handles: JobHandle[Any]) -> list[UUID]:
    return [handle.id for handle in handles]


# ---------------------------------------------------------------------- looking


def test_dead_letters_come_in_pages_the_latest_first(app: Windlass, clock: VirtualClock):
    """J5.7, api.md: an iterable page, with a cursor."""
    handles = []
    for _ in range(5):
        handles += failed(app)
        clock.advance(1)
    first = app.dead_letters.find(limit=2)
    assert [letter.job_id for letter in first] == ids(*handles[:2:-1])
    second = app.dead_letters.find(limit=10, cursor=first.next_cursor)
    assert [letter.job_id for letter in second] == ids(*handles[2::-1])
    assert second.next_cursor is None
    assert (app.dead_letters.find("execution").items, app.dead_letters.groups("execution")) == ([], [])


def test_filters_narrow_pages_and_groups(app: Windlass, clock: VirtualClock):
    """J5.7: fingerprint, target, error class, reason, queue, tag, and when it died."""
    (odd,) = failed(app, queue="pay", tags=["Import"])
    clock.advance(60)
    other = app.bind(jobs.fail, "no").enqueue()
    drain(app)
    letter, now = app.dead_letters.get(odd.id), clock.now()
    for filters in (
        {"fingerprint": letter.fingerprint},
        {"target": letter.resource_name},
        {"queue": "pay"},
        {"tag": "import"},
        {"created_before": now},
        {"created_after": now - timedelta(minutes=2), "created_before": now - timedelta(seconds=1)},
        {"error_class": "ValueError", "reason": "retry_exhausted", "queue": "pay"},
    ):
        assert [found.job_id for found in app.dead_letters.find(**filters)] == [odd.id], filters
        (group,) = app.dead_letters.groups(**filters)
        assert (group.fingerprint, group.count, group.target) == (letter.fingerprint, 1, letter.resource_name)
    assert [found.job_id for found in app.dead_letters.find(created_after=now)] == [other.id]
    assert len(app.dead_letters.find(error_class="ValueError", reason="retry_exhausted")) == 2
    for nothing in ({"reason": "worker_lost"}, {"tag": "x"}, {"fingerprint": "x"}, {"error_class": "KeyError"}):
        assert (app.dead_letters.find(**nothing).items, app.dead_letters.groups(**nothing)) == ([], [])  # type: ignore[arg-type]


def test_groups_have_the_shape_of_their_errors_in_common(app: Windlass):
    """J5.7, J2.4: what differs is numbers; a group that was re-driven is gone."""
    handles = failed(app, 3)
    app.bind(jobs.fail, "no").enqueue()
    drain(app)
    first, second = app.dead_letters.groups()
    assert (first.count, second.count) == (3, 1)
    assert "has no address" in first.sample
    assert (first.error_class, first.first_at, first.last_at) == ("ValueError", *[app.parts.clock.now()] * 2)
    assert app.dead_letters.groups(limit=1) == [first]
    assert all(handle.retry() for handle in handles)
    assert app.dead_letters.groups() == [second]


def test_a_dead_letter_is_read_by_its_job_id(app: Windlass):
    """api.md: an unknown id is `JobNotFoundError`; a job that is none says what it is."""
    (handle,) = failed(app)
    assert app.dead_letters.get(str(handle.id)).job_id == handle.id
    with pytest.raises(JobNotFoundError):
        app.dead_letters.get(UNKNOWN)
    assert handle.pause()
    with pytest.raises(JobStateError, match="not a dead letter, but PAUSED"):
        app.dead_letters.get(handle.id)
    assert handle.resume()
    assert app.dead_letters.get(handle.id).job_id == handle.id


def test_alerts_come_in_pages_too(app: Windlass, clock: VirtualClock):
    """J5.4: the latest raised first, by target, error and time."""
    for _ in range(3):
        failed(app)
        clock.advance(3601)
    app.bind(jobs.fail, "no").enqueue()
    drain(app)
    page = app.alerts.find(limit=3)
    assert [alert.target.rpartition(":")[2] for alert in page] == ["fail", "ship", "ship"]
    (last,) = app.alerts.find(cursor=page.next_cursor, limit=3)
    assert last.first_at == min(alert.first_at for alert in app.alerts.find())
    assert app.alerts.find(target=page.items[0].target).items == page.items[:1]
    assert app.alerts.find(error_hash=last.error_hash, created_before=page.items[2].first_at).items == [last]
    assert app.alerts.find(created_after=clock.now(), error_class="ValueError").items == page.items[:1]


# ---------------------------------------------------------------------- starting over


def test_a_redrive_starts_with_the_oldest_dead_letter(app: Windlass, apps: Apps, clock: VirtualClock):
    """J5.7, J2.4: up to its limit; attempts 0, due now; one audit row has the principal, the action and the reason."""
    handles = []
    for _ in range(3):
        handles += failed(app)
        clock.advance(1)
    BROKEN.clear()
    done = app.dead_letters.redrive(limit=2, note="address service is back", target="shop:nothing")
    assert done == Redrive(0, 0, ())
    done = app.dead_letters.redrive(limit=2, note="address service is back", error_class="ValueError")
    assert (done.selected, done.redriven, list(done.ids)) == (2, 2, ids(*handles[:2]))
    assert [handle.status() for handle in handles] == [JobStatus.PENDING, JobStatus.PENDING, JobStatus.FAILED]
    assert app.get(handles[0].id).attempts == 0
    assert drain(app).succeeded == 2
    ((principal, action, number, text),) = query(
        apps.url, "SELECT principal, action, count, detail FROM windlass_audit"
    )
    detail = json.loads(text)
    assert ("@" in principal, action, number) == (True, "dead_letters.redrive", 2)
    assert (detail["note"], detail["filters"]) == ("address service is back", {"error_class": "ValueError"})
    assert (detail["selected"], detail["redriven"], detail["skipped"], detail["limit"]) == (2, 2, 0, 2)


def test_a_dry_run_touches_nothing(app: Windlass, apps: Apps):
    """J5.7: it says what would be re-driven."""
    handles = failed(app, 3)
    before = query(apps.url, "SELECT * FROM windlass_dead_letter")
    done = app.dead_letters.redrive(dry_run=True, limit=2)
    assert (done.selected, done.redriven, list(done.ids)) == (2, 0, ids(*handles[:2]))
    assert {handle.status() for handle in handles} == {JobStatus.FAILED}
    assert query(apps.url, "SELECT * FROM windlass_dead_letter") == before
    assert count(apps.url, "audit") == 0


def test_a_held_business_key_skips_only_its_own_job(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J5.7, J1.5: the result counts it as skipped."""
    (first,) = failed(app, business_key="order:1")
    rest = failed(app, 2)
    holder = app.bind(ship, 99).using(business_key="order:1", delay=60).enqueue()
    done = app.dead_letters.redrive()
    assert (done.selected, done.redriven, list(done.ids)) == (3, 2, ids(*rest))
    assert done.skipped == {first.id: f"job {holder.id} holds its business key 'order:1'"}
    assert f"dead letter {first.id} was not re-driven" in caplog.text
    assert first.status() is JobStatus.FAILED


def test_many_batches_are_one_redrive(app: Windlass, apps: Apps):
    """J5.7: bounded transactions; each job once, one audit row that adds up."""
    failed(app, 250)
    sums: list[tuple[int, int]] = []
    done = app.dead_letters.redrive(
        limit=1000, on_progress=lambda so_far: sums.append((so_far.selected, so_far.redriven))
    )
    assert (done.selected, done.redriven, len(set(done.ids))) == (250, 250, 250)
    assert sums == [(100, 100), (200, 200), (250, 250)]
    assert query(apps.url, "SELECT count FROM windlass_audit") == [(250,)]
    assert app.dead_letters.groups() == []


def test_a_job_that_fails_again_during_a_redrive_is_not_redriven_twice(app: Windlass, clock: VirtualClock):
    """J5.7: they fail as fast as they are re-driven, by a clock that stands still; it ends all the same."""
    handles = failed(app, 120)
    clock.advance(10)
    done = app.dead_letters.redrive(limit=1000, stop_at=1, on_progress=lambda _: drain(app))
    assert (done.selected, done.redriven, len(set(done.ids))) == (120, 120, 120)
    assert {len(app.history(handle.id)) for handle in handles[::40]} == {2}


def test_a_redrive_stops_when_too_many_jobs_fail_again(apps: Apps):
    """J5.7: more than half of at least twenty that have ended, unless configured otherwise."""
    app = apps()
    ship_job = app.job(ship)
    BROKEN.update(range(150))
    with app.worker():
        app.enqueue_many([ship_job.bind(n) for n in range(150)])
        until(lambda: count(apps.url, "dead_letter") == 150)
        done = app.dead_letters.redrive(
            limit=1000, on_progress=lambda _: until(lambda: count(apps.url, "dead_letter") == 150)
        )
    assert (done.selected, done.redriven) == (100, 100)
    assert done.stopped == "100 of the 100 that have ended since failed again, more than 50%"


def test_a_rate_spreads_a_redrive(app: Windlass):
    """J5.7: no more than a second's worth at once, and as much time in between."""
    failed(app, 25)
    sums: list[tuple[int, float]] = []
    began = monotonic()
    done = app.dead_letters.redrive(rate=20, on_progress=lambda so_far: sums.append((so_far.redriven, monotonic())))
    (first, _), (second, late) = sums
    assert (done.redriven, first, second) == (25, 20, 25)
    assert late - began > 0.99


def test_a_redrive_filters_by_reason_and_keeps_its_note(app: Windlass, apps: Apps):
    """J5.7: `reason` is the terminal reason and nothing else; `note` is for the audit log, whatever it says."""
    failed(app, 2)
    with pytest.raises(InvalidOptionError, match=r"reason must be one of .*, got 'bank is back'"):
        app.dead_letters.redrive(reason="bank is back")
    assert app.dead_letters.redrive(reason="worker_lost").selected == 0
    assert app.dead_letters.redrive(reason="retry_exhausted", dry_run=True).selected == 2
    assert app.dead_letters.redrive(note="worker_lost", reason="retry_exhausted").redriven == 2
    ((text,),) = query(apps.url, "SELECT detail FROM windlass_audit")
    assert (json.loads(text)["note"], json.loads(text)["filters"]) == ("worker_lost", {"reason": "retry_exhausted"})


def test_a_paused_dead_letter_is_not_redriven(app: Windlass):
    """J2.3: nor listed."""
    (handle, other) = failed(app, 2)
    assert handle.pause()
    assert list(app.dead_letters.redrive().ids) == [other.id]
    assert handle.status() is JobStatus.PAUSED
    assert handle.resume()
    assert [letter.job_id for letter in app.dead_letters.find()] == [handle.id]


def test_a_worker_runs_what_was_redriven_at_once(apps: Apps):
    """J5.7, J3.6: like anything that is due."""
    app = apps()
    handle = app.job(ship).enqueue(1)
    BROKEN.add(1)
    with app.worker():
        assert handle.join(timeout=LONG) is JobStatus.FAILED
        BROKEN.clear()
        assert app.dead_letters.redrive().redriven == 1
        assert handle.result(timeout=LONG) == "shipped 1"


# ---------------------------------------------------------------------- forgetting


def test_a_purge_deletes_old_dead_letters(app: Windlass, apps: Apps, clock: VirtualClock):
    """J5.6: by the time of its death; keys stay for ever; an audit row says so."""
    (old,) = failed(app, idempotency_key="i1", tags=["x"])
    clock.advance(89 * DAY)
    (young,) = failed(app)
    clock.advance(DAY)
    assert app.dead_letters.purge(timedelta(days=90)) == 1
    assert [letter.job_id for letter in app.dead_letters.find()] == [young.id]
    with pytest.raises(JobNotFoundError):
        app.get(old.id)
    again = app.bind(ship, 1).using(idempotency_key="i1").enqueue()
    assert (again.id, again.duplicate) == (old.id, True)
    assert [alert.first_job_id for alert in app.alerts.find()] == [young.id]
    assert query(apps.url, "SELECT action, count FROM windlass_audit") == [("dead_letters.purge", 1)]
    assert app.dead_letters.purge(0) == 1
    assert {count(apps.url, table) for table in ("job", "done", "attempt", "job_tag", "alert")} == {0}


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("verb", "given", "expected"),
    [
        ("find", {"reason": "retries_exhausted"}, "did you mean 'retry_exhausted'"),
        ("find", {"kind": "jobs"}, "'job' or 'execution'"),
        ("find", {"cursor": "x"}, "next_cursor"),
        ("find", {"limit": 0}, "1 to 1,000"),
        ("groups", {"target": ""}, "stored name"),
        ("groups", {"created_after": datetime(2030, 1, 1)}, "aware datetime"),  # noqa: DTZ001 - that is the point
        ("redrive", {"limit": 0}, "1 to 100,000"),
        ("redrive", {"limit": True}, "whole number"),
        ("redrive", {"rate": 0}, "above 0"),
        ("redrive", {"rate": float("nan")}, "above 0"),
        ("redrive", {"stop_at": 2}, "from 0 to 1"),
        ("redrive", {"terminal_reason": "x"}, "has no filter 'terminal_reason'"),
        ("redrive", {"note": 7}, "audit log"),
        ("purge", {"older_than": -1}, "negative"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_changes(app: Windlass, verb: str, given: Any, expected: str):
    """api.md, Errors: what was expected, what came, and what to do."""
    with pytest.raises(InvalidOptionError, match=expected):
        getattr(app.dead_letters, verb)(**given)


async def test_every_verb_has_an_async_twin(app: Windlass, clock: VirtualClock):
    """api.md: an `a` in front, the same parameters, the same answers."""
    for kind, verbs in ((DeadLetters, ["find", "get", "groups", "redrive", "purge"]), (Alerts, ["find"])):
        for verb in verbs:
            sync, twin = getattr(kind, verb), getattr(kind, f"a{verb}")
            assert inspect.iscoroutinefunction(twin)
            assert list(inspect.signature(sync).parameters) == list(inspect.signature(twin).parameters)
    BROKEN.update(range(2))
    handles = app.enqueue_many([app.bind(ship, n) for n in range(2)])
    async with app.worker():
        for handle in handles:
            await handle.ajoin(timeout=LONG)
    letters, groups = await app.dead_letters.afind(), await app.dead_letters.agroups()
    assert (len(letters), groups[0].count, len(await app.alerts.afind())) == (2, 2, 1)
    assert (await app.dead_letters.aget(handles[0].id)).job_id == handles[0].id
    assert (await app.dead_letters.aredrive(limit=1, rate=1000)).redriven == 1
    clock.advance(DAY)
    assert await app.dead_letters.apurge(DAY / 2) == 1
    assert len(await app.dead_letters.afind("execution")) == len(await app.dead_letters.agroups("execution")) == 0
