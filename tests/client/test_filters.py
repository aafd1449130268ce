"""Finding jobs: filters, pages, and where they look."""

from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate
from windlass import InvalidOptionError, JobStatus, Page, Windlass
from windlass.domain.clock import VirtualClock
from windlass.stores.dialect import Dialect
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import archive, search


def ids(page: Page) -> list:
    return [job.id for job in page]


def everything(app: Windlass, **filters: object) -> list:
    """All pages, of two jobs each."""
    found, cursor = [], None
    while True:
        page = app.find(limit=2, cursor=cursor, **filters)  # type: ignore[arg-type]
        assert len(page) <= 2
        found += ids(page)
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.fixture
def zoo(app: Windlass) -> dict[str, Any]:
    """A job in every state, oldest first by their names here."""
    note, fail = app.job(jobs.note), app.job(jobs.fail)
    made: dict[str, Any] = {
        "succeeded": note.using(queue="mail", tags=["a"]).enqueue("x"),
        "failed": fail.using(tags=["a", "b"], business_key="order:7").enqueue("x"),
        "canceled": note.using(delay=600).enqueue("x"),
        "paused": note.using(delay=600, tags=["b"]).enqueue("x"),
        "paused dead letter": fail.using(queue="mail").enqueue("x"),
        "pending": note.using(delay=600, queue="mail", business_key="order:7", on_conflict="return_existing"),
    }
    pending = made.pop("pending")
    with app.worker():
        for name in ("succeeded", "failed", "paused dead letter"):
            made[name].join(timeout=LONG)
    made["pending"] = pending.enqueue("x")
    made["canceled"].cancel()
    made["paused"].pause()
    made["paused dead letter"].pause()
    return made


def test_everything_is_found_newest_first_a_page_at_a_time(app: Windlass, zoo: dict):
    """api.md: `find` spans live and ended jobs; pages follow each other by their cursor and never overlap."""
    newest_first = sorted((handle.id for handle in zoo.values()), reverse=True)
    assert everything(app) == newest_first
    page = app.find(limit=4)
    assert ids(page) == newest_first[:4]
    assert ids(app.find(limit=4, cursor=page.next_cursor)) == newest_first[4:]
    assert page.items[0] == app.get(newest_first[0])


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"status": "PENDING"}, ["pending"]),
        ({"status": JobStatus.SUCCEEDED}, ["succeeded"]),
        ({"status": "failed"}, ["failed"]),
        ({"status": "CANCELED"}, ["canceled"]),
        ({"status": "PAUSED"}, ["paused", "paused dead letter"]),
        ({"status": "RUNNING"}, []),
        ({"status": "WAITING"}, []),
        ({"queue": "mail"}, ["succeeded", "paused dead letter", "pending"]),
        ({"queue": "mail", "status": "PAUSED"}, ["paused dead letter"]),
        ({"tag": " A "}, ["succeeded", "failed"]),
        ({"tag": "b", "status": "PAUSED"}, ["paused"]),
        ({"target": "tests.engine.jobs:fail"}, ["failed", "paused dead letter"]),
        ({"business_key": "order:7"}, ["failed", "pending"]),
        ({"business_key": "order:7", "tag": "b"}, ["failed"]),
        ({"business_key": "order:7", "status": "PENDING"}, ["pending"]),
        ({"tag": "none"}, []),
    ],
    ids=str,
)
def test_filters_give_what_fits_all_of_them(app: Windlass, zoo: dict, filters: dict, names: list):
    """api.md: status, queue, tag, target, business key, alone and together."""
    assert everything(app, **filters) == sorted((zoo[name].id for name in names), reverse=True)


def test_a_running_job_is_found_while_it_runs(app: Windlass, gate: Gate):
    """api.md: RUNNING."""
    handle = app.job(jobs.hold).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        assert ids(app.find(status="RUNNING")) == [handle.id]
        gate.open()


async def test_created_bounds_are_exact(app: Windlass):
    """api.md: `created_after` is included, `created_before` is not."""
    first = await app.job(jobs.note).aenqueue("x")
    second = await app.job(jobs.note).aenqueue("y")
    moment = (await app.aget(second.id)).created_at
    assert ids(await app.afind(created_after=moment)) == [second.id]
    assert ids(await app.afind(created_before=moment)) == [first.id]
    assert ids(await app.afind(created_after=moment + timedelta(days=1))) == []


def test_archived_jobs_are_found_and_read_like_any_other(app: Windlass):
    """J7.7: reads span live, done and archive."""
    handles = [app.job(jobs.note).using(tags=["t"]).enqueue(str(n)) for n in range(3)]
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
    before = [app.get(handle.id) for handle in handles]
    history = app.history(handles[1].id)
    assert app.database.run(archive.move, [str(handles[1].id)]).jobs == 1
    assert [app.get(handle.id) for handle in handles] == before
    assert app.history(handles[1].id) == history
    newest_first = [handle.id for handle in reversed(handles)]
    assert everything(app) == everything(app, status="SUCCEEDED") == everything(app, tag="t") == newest_first


def test_a_live_job_is_not_moved_to_the_archive(app: Windlass):
    """J7.7: only what has ended."""
    handle = app.job(jobs.note).using(delay=600).enqueue("x")
    assert app.database.run(archive.move, [str(handle.id)]).jobs == 0
    assert handle.status() is JobStatus.PENDING


def test_a_page_reads_a_bounded_number_of_rows(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """The docstring of `find`: a page may come back short, and still have a next one."""
    monkeypatch.setattr(search, "MOST_READ", 300)
    note, add = app.job(jobs.note), app.job(jobs.add)
    (rare,) = app.enqueue_many([add.bind(1, 2)])
    app.enqueue_many([note.bind(str(n)) for n in range(1200)])
    page = app.find(target="tests.engine.jobs:add")
    assert (ids(page), page.next_cursor is not None) == ([], True)
    assert everything(app, target="tests.engine.jobs:add") == [rare.id]


@pytest.mark.parametrize(
    ("filters", "says"),
    [
        ({"status": "DONE"}, "status must be one of PENDING"),
        ({"limit": 0}, "limit must be a whole number from 1 to 1,000, got 0"),
        ({"cursor": "next"}, "a cursor comes from the page before"),
        ({"created_after": datetime(2026, 1, 1)}, "created_after must be an aware datetime"),  # noqa: DTZ001
        ({"queue": ""}, "queue"),
    ],
)
def test_bad_filters_are_refused_by_name(app: Windlass, filters: dict, says: str):
    """api.md: the error names what is wrong."""
    with pytest.raises(InvalidOptionError, match=says):
        app.find(**filters)


@pytest.mark.parametrize(
    ("verb", "given", "says"),
    [
        ("find", {"stats": "FAILED"}, r"find\(\) has no filter 'stats'; did you mean 'status'\?"),
        ("find", {"colour": "red"}, r"has no filter 'colour'; it has business_key, created_after, .*, tag, target"),
        ("find", {"target": 7}, "target must be a stored name like 'shop:charge' or the job function itself, got 7"),
        ("find", {"target": " "}, "target must be a stored name"),
        ("find", {"status": 7}, "status must be one of PENDING"),
        ("find", {"tag": 7}, "a tag must be a str"),
        ("find", {"business_key": 7}, "business_key must be a str"),
        ("find", {"queue": ["mail"]}, "queue must be"),
        ("retry_many", {"taget": "shop:charge"}, r"retry_many\(\) has no filter 'taget'; did you mean 'target'\?"),
        ("retry_many", {"status": "FAILED"}, r"retry_many\(\) has no filter 'status'; it has business_key"),
        ("retry_many", {"target": len}, "target must be a stored name"),
        (
            "dead_letters.find",
            {"finger": "x"},
            r"dead_letters.find\(\) has no filter 'finger'; did you mean 'fingerprint'",
        ),
        ("dead_letters.groups", {"quue": "x"}, r"dead_letters.groups\(\) has no filter 'quue'; did you mean 'queue'"),
        ("dead_letters.redrive", {"error_clas": "x"}, "has no filter 'error_clas'; did you mean 'error_class'"),
        ("dead_letters.redrive", {"target": 7}, "target must be a stored name"),
        ("alerts.find", {"hash": "x"}, r"alerts.find\(\) has no filter 'hash'"),
    ],
    ids=str,
)
async def test_unknown_filters_are_refused_with_a_suggestion(app: Windlass, verb: str, given: dict, says: str):
    """api.md, Errors: an unknown filter would be ignored, and far more would be found, retried or re-driven."""
    noun, _, name = verb.rpartition(".")
    with pytest.raises(InvalidOptionError, match=says):
        getattr(attrgetter(noun)(app) if noun else app, name)(**given)
    with pytest.raises(InvalidOptionError, match=says):
        await getattr(attrgetter(noun)(app) if noun else app, f"a{name}")(**given)


def test_a_target_may_be_given_as_its_job_function(app: Windlass, zoo: dict):
    """api.md: `find(target=charge)` means the name under which its jobs are stored."""
    fail = app.job(jobs.fail)
    assert everything(app, target=fail) == everything(app, target="tests.engine.jobs:fail")
    assert [letter.job_id for letter in app.dead_letters.find(target=fail)] == [zoo["failed"].id]
    assert app.alerts.find(target=fail).items == app.alerts.find().items
    assert app.dead_letters.redrive(dry_run=True, target=app.job(jobs.note)).selected == 0
    zoo["pending"].cancel()  # it holds the business key of the dead letter
    assert (app.retry_many(target=app.job(jobs.note)), app.retry_many(target=fail)) == (0, 1)


def test_a_damaged_row_does_not_hide_the_others(app: Windlass):
    """J1.1: what cannot be read is shown as it is stored."""
    fine, broken = (app.job(jobs.note).using(delay=600).enqueue(text) for text in ("fine", "broken"))
    script = f"UPDATE windlass_job SET args = '{{oops' WHERE id = '{broken.id}'"
    app.database.run(_script, script)
    assert {job.id: job.args for job in app.find()} == {fine.id: ("fine",), broken.id: ("{oops",)}


def _script(dialect: Dialect, text: str) -> Plan[None]:
    del dialect
    yield Step(SCRIPT, {"text": text})


def test_nothing_is_found_in_an_empty_store(apps: Apps):
    page = apps().find()
    assert (list(page), page.next_cursor, len(page)) == ([], None, 0)


def test_creation_times_are_found_by_a_clock_of_the_tests_own(apps: Apps):
    """api.md: ids are made by the wall clock, creation times by the store's."""
    clock = VirtualClock()
    app = apps(clock=clock)
    clock.advance(10 * 365 * 86_400)
    handle = app.job(jobs.note).using(delay=60).enqueue("x")
    made = app.get(handle.id).created_at
    assert [job.id for job in app.find(created_after=made - timedelta(seconds=1))] == [handle.id]
