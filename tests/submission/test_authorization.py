"""Authorization: the authorizer is asked for every verb, and a refused one changes nothing and shows nothing."""

import asyncio
import inspect
import pickle
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count, everything_stored
from windlass import Job, JobNotFoundError, JobStatus, NotAuthorizedError, Windlass, every
from windlass.testing import drain, isolated

MARK = 31
"""The argument of jobs in these tests."""


class Judge:
    """Records its calls, and returns what it was given."""

    def __init__(self, answer: object = True) -> None:
        self.answer = answer
        self.asked: list[tuple[object, str, Job | None]] = []

    def may(self, principal: object, action: str, job: Job | None) -> bool:
        self.asked.append((principal, action, job))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(principal, action, job) if callable(self.answer) else self.answer  # type: ignore[return-value]

    def actions(self) -> list[str]:
        return [action for _, action, _ in self.asked]


Verb = Callable[[Windlass, UUID], Any]

ON_A_JOB: dict[str, Verb] = {
    "cancel": lambda app, job: app.cancel(job),
    "signal": lambda app, job: app.signal(job),
    "pause": lambda app, job: app.pause(job),
    "resume": lambda app, job: app.resume(job),
    "retry": lambda app, job: app.retry(job),
    "replace": lambda app, job: app.replace(job, app.bind(jobs.add, 1, 2)),
    "get": lambda app, job: app.get(job),
    "history": lambda app, job: app.history(job),
    "explain": lambda app, job: app.explain(job),
    "graph": lambda app, job: app.graph(job),
    "log_lines": lambda app, job: app.log_lines(job),
}
WITHOUT_A_JOB: dict[str, Verb] = {
    "find": lambda app, job: app.find(),
    "retry_many": lambda app, job: app.retry_many(),
    "cancel_by_tag": lambda app, job: app.cancel_by_tag("x"),
    "pause_queue": lambda app, job: app.pause_queue("default"),
    "resume_queue": lambda app, job: app.resume_queue("default"),
    "drain_node": lambda app, job: app.drain_node("nobody"),
    "nodes": lambda app, job: app.nodes(),
    "queues": lambda app, job: app.queues(),
    "limit_queue": lambda app, job: app.limit_queue("default", 1),
    "configure_resource": lambda app, job: app.configure_resource("stripe", 1),
    "configure_circuit": lambda app, job: app.configure_circuit("gateway"),
    "resources": lambda app, job: app.resources(),
    "circuits": lambda app, job: app.circuits(),
    "schedule": lambda app, job: app.schedule("sync", every(hours=1), app.bind(jobs.add, 1, 2)),
}
BY_HANDLE: dict[str, tuple[str, Verb]] = {
    "circuit.state": ("circuits", lambda app, job: app.circuit("gateway").state()),
    "circuit.open": ("open_circuit", lambda app, job: app.circuit("gateway").open()),
    "circuit.close": ("close_circuit", lambda app, job: app.circuit("gateway").close()),
    "circuit.reset": ("reset_circuit", lambda app, job: app.circuit("gateway").reset()),
    "dead_letters.find": ("dead_letters", lambda app, job: app.dead_letters.find()),
    "dead_letters.groups": ("dead_letters", lambda app, job: app.dead_letters.groups()),
    "dead_letters.get": ("get", lambda app, job: app.dead_letters.get(job)),
    "dead_letters.redrive": ("redrive", lambda app, job: app.dead_letters.redrive()),
    "dead_letters.purge": ("purge", lambda app, job: app.dead_letters.purge(0)),
    "alerts.find": ("alerts", lambda app, job: app.alerts.find()),
    "schedules.list": ("schedules", lambda app, job: app.schedules.list()),
    "schedules.pause": ("pause_schedule", lambda app, job: app.schedules.pause("sync")),
    "schedules.resume": ("resume_schedule", lambda app, job: app.schedules.resume("sync")),
    "schedules.trigger": ("trigger_schedule", lambda app, job: app.schedules.trigger("sync")),
    "schedules.remove": ("remove_schedule", lambda app, job: app.schedules.remove("sync")),
    "handle.status": ("get", lambda app, job: app.handle(job).status()),
    "handle.result": ("get", lambda app, job: app.handle(job).result(timeout=0)),
    "handle.join": ("get", lambda app, job: app.handle(job).join(timeout=0)),
    "handle.cancel": ("cancel", lambda app, job: app.handle(job).cancel()),
    "handle.retry": ("retry", lambda app, job: app.handle(job).retry()),
}
VERBS = {**{name: (name, verb) for name, verb in (ON_A_JOB | WITHOUT_A_JOB).items()}, **BY_HANDLE}

AVerb = Callable[[Windlass, UUID], Awaitable[Any]]
TWINS: dict[str, tuple[str, AVerb]] = {
    "acancel": ("cancel", lambda app, job: app.acancel(job)),
    "asignal": ("signal", lambda app, job: app.asignal(job)),
    "apause": ("pause", lambda app, job: app.apause(job)),
    "aresume": ("resume", lambda app, job: app.aresume(job)),
    "aretry": ("retry", lambda app, job: app.aretry(job)),
    "areplace": ("replace", lambda app, job: app.areplace(job, app.bind(jobs.add, 1, 2))),
    "aget": ("get", lambda app, job: app.aget(job)),
    "ahistory": ("history", lambda app, job: app.ahistory(job)),
    "alog_lines": ("log_lines", lambda app, job: app.alog_lines(job)),
    "afind": ("find", lambda app, job: app.afind()),
    "aretry_many": ("retry_many", lambda app, job: app.aretry_many()),
    "acancel_by_tag": ("cancel_by_tag", lambda app, job: app.acancel_by_tag("x")),
    "apause_queue": ("pause_queue", lambda app, job: app.apause_queue("default")),
    "aresume_queue": ("resume_queue", lambda app, job: app.aresume_queue("default")),
    "adrain_node": ("drain_node", lambda app, job: app.adrain_node("nobody")),
    "anodes": ("nodes", lambda app, job: app.anodes()),
    "aqueues": ("queues", lambda app, job: app.aqueues()),
    "aexplain": ("explain", lambda app, job: app.aexplain(job)),
    "agraph": ("graph", lambda app, job: app.agraph(job)),
    "alimit_queue": ("limit_queue", lambda app, job: app.alimit_queue("default", 1)),
    "aconfigure_resource": ("configure_resource", lambda app, job: app.aconfigure_resource("stripe", 1)),
    "aconfigure_circuit": ("configure_circuit", lambda app, job: app.aconfigure_circuit("gateway")),
    "aresources": ("resources", lambda app, job: app.aresources()),
    "acircuits": ("circuits", lambda app, job: app.acircuits()),
    "aschedule": ("schedule", lambda app, job: app.aschedule("sync", every(hours=1), app.bind(jobs.add, 1, 2))),
    "schedules.alist": ("schedules", lambda app, job: app.schedules.alist()),
    "schedules.apause": ("pause_schedule", lambda app, job: app.schedules.apause("sync")),
    "schedules.aresume": ("resume_schedule", lambda app, job: app.schedules.aresume("sync")),
    "schedules.atrigger": ("trigger_schedule", lambda app, job: app.schedules.atrigger("sync")),
    "schedules.aremove": ("remove_schedule", lambda app, job: app.schedules.aremove("sync")),
    "circuit.astate": ("circuits", lambda app, job: app.circuit("gateway").astate()),
    "circuit.aopen": ("open_circuit", lambda app, job: app.circuit("gateway").aopen()),
    "circuit.aclose": ("close_circuit", lambda app, job: app.circuit("gateway").aclose()),
    "circuit.areset": ("reset_circuit", lambda app, job: app.circuit("gateway").areset()),
    "dead_letters.afind": ("dead_letters", lambda app, job: app.dead_letters.afind()),
    "dead_letters.agroups": ("dead_letters", lambda app, job: app.dead_letters.agroups()),
    "dead_letters.aget": ("get", lambda app, job: app.dead_letters.aget(job)),
    "dead_letters.aredrive": ("redrive", lambda app, job: app.dead_letters.aredrive()),
    "dead_letters.apurge": ("purge", lambda app, job: app.dead_letters.apurge(0)),
    "alerts.afind": ("alerts", lambda app, job: app.alerts.afind()),
    "handle.astatus": ("get", lambda app, job: app.handle(job).astatus()),
    "handle.aresult": ("get", lambda app, job: app.handle(job).aresult(timeout=0)),
    "handle.ajoin": ("get", lambda app, job: app.handle(job).ajoin(timeout=0)),
    "acheck_may": ("export", lambda app, job: app.acheck_may("export", job)),
}
UNCHECKED = {"health", "migrate", "close", "worker", "run_worker", "submit", "enqueue_many", "enqueue_by_name"}
"""Probes, and what programs do; enqueueing has tests of its own."""


def stored_job(apps: Apps) -> UUID:
    """A job that was stored before there was an authorizer."""
    return apps().job(jobs.add).using(tags=["x"], params={"owner": "ann"}).enqueue(MARK, 2).id


def judged(apps: Apps, judge: Judge) -> Windlass:
    app = apps(authorizer=judge, allow=["tests.engine.jobs"])
    app.job(jobs.add)
    return app


def test_every_verb_of_the_application_is_in_these_tables():
    """J6.5: a verb that is added later is checked, or listed as unchecked."""
    methods = {name for name in dir(Windlass) if inspect.isfunction(getattr(Windlass, name))}
    verbs = {name for name in methods if f"a{name}" in methods} - UNCHECKED
    assert verbs - {"check_may"} <= set(VERBS)
    assert {f"a{name}" for name in verbs} <= set(TWINS)


ON_SQLITE = pytest.mark.parametrize("apps", ["sqlite"], indirect=True)
"""For what is decided before the store is asked: every verb once is enough."""


@ON_SQLITE
@pytest.mark.parametrize("name", VERBS)
def test_a_refused_verb_names_principal_and_action_and_changes_nothing(apps: Apps, name: str):
    """J6.5: `NotAuthorizedError`, before anything is written."""
    action, verb = VERBS[name]
    job = stored_job(apps)
    before = everything_stored(apps.url)
    app = judged(apps, Judge(answer=False))
    with app.acting_as("bob"), pytest.raises(NotAuthorizedError) as caught:
        verb(app, job)
    error = caught.value
    named = action in ON_A_JOB
    assert (error.principal, error.action, error.job_id) == ("bob", action, job if named else None)
    assert str(error).startswith(f"bob may not {action}{f' job {job}' if named else ''}: the authorizer refused")
    assert everything_stored(apps.url) == before
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@ON_SQLITE
@pytest.mark.parametrize("name", TWINS)
async def test_a_refused_async_verb_does_the_same(apps: Apps, name: str):
    """J6.5: async twins; the principal follows the task."""
    action, verb = TWINS[name]
    job = await asyncio.to_thread(stored_job, apps)
    judge = Judge(answer=False)
    app = await asyncio.to_thread(judged, apps, judge)
    before = everything_stored(apps.url)
    with app.acting_as("bob"), pytest.raises(NotAuthorizedError, match=f"bob may not {action}"):
        await verb(app, job)
    assert [(principal, asked) for principal, asked, _ in judge.asked] == [("bob", action)]
    assert everything_stored(apps.url) == before


@pytest.mark.parametrize("name", ON_A_JOB)
def test_the_job_is_shown_to_the_authorizer(apps: Apps, name: str):
    """J6.5: it can judge by target, queue, tags, params; an allowed verb does its work."""
    job = stored_job(apps)
    judge = Judge()
    app = judged(apps, judge)
    with app.acting_as("ann"):
        ON_A_JOB[name](app, job)
    principal, action, seen = judge.asked[0]
    assert (principal, action) == ("ann", name)
    assert seen is not None
    assert (seen.id, seen.args, seen.tags, seen.params) == (job, (MARK, 2), ("x",), {"owner": "ann"})
    assert judge.actions() == ([name, "enqueue"] if name == "replace" else [name])


@pytest.mark.parametrize("name", ["cancel", "pause", "resume", "retry"])
def test_an_unknown_job_is_judged_without_one(apps: Apps, name: str):
    """J6.5: a principal without rights learns nothing, not even whether a job exists."""
    app, unknown = judged(apps, Judge(lambda principal, action, job: principal == "ops")), uuid4()
    with app.acting_as("ops"):
        assert ON_A_JOB[name](app, unknown) is False
        with pytest.raises(JobNotFoundError):
            app.get(unknown)
    with app.acting_as("bob"), pytest.raises(NotAuthorizedError):
        ON_A_JOB[name](app, unknown)


def test_enqueueing_is_judged_by_the_job_it_would_be(apps: Apps):
    """J6.5: all calls before any is stored; also those of `replace`, and on a connection of the caller's."""
    judge = Judge(lambda principal, action, job: job is not None and job.queue != "payroll")
    app = judged(apps, judge)
    add = app.job(jobs.add)
    calls = [add.using(tags=["t"]).bind(1, 2), add.using(queue="payroll").bind(3, 4)]
    with app.acting_as("ann"):
        with pytest.raises(NotAuthorizedError, match="ann may not enqueue: the authorizer refused"):
            app.enqueue_many(calls)
        with pytest.raises(NotAuthorizedError):
            app.enqueue_by_name(add.target, [3, 4], queue="payroll")
        assert count(apps.url, "job") == 0
        handle = calls[0].enqueue()
        with pytest.raises(NotAuthorizedError):
            app.replace(handle.id, calls[1])
    assert handle.status() is JobStatus.PENDING
    seen = judge.asked[0][2]
    assert seen is not None
    assert (seen.target, seen.args, seen.tags, seen.status) == (
        "tests.engine.jobs:add",
        (1, 2),
        ("t",),
        JobStatus.PENDING,
    )


async def test_enqueueing_async_is_judged_too(apps: Apps):
    """J6.5: `aenqueue`, `aenqueue_many`, `aenqueue_by_name`."""
    app = await asyncio.to_thread(judged, apps, Judge(answer=False))
    call = app.bind(jobs.add, 1, 2)
    for enqueued in (call.aenqueue(), app.aenqueue_many([call]), app.aenqueue_by_name(call.target, [1, 2])):
        with pytest.raises(NotAuthorizedError, match="the program itself may not enqueue"):
            await enqueued
    assert count(apps.url, "job") == 0


async def test_find_shows_only_what_may_be_got(apps: Apps):
    """J6.5: asked once for the verb, and for each job of the page; a page may hold fewer than its limit."""
    plain = apps()
    add = plain.job(jobs.add)
    mine, _ = [add.using(params={"owner": owner}).enqueue(1, 2) for owner in ("ann", "bob")]
    app = judged(apps, Judge(lambda principal, action, job: job is None or job.params["owner"] == principal))
    with app.acting_as("ann"):
        assert [job.id for job in app.find()] == [mine.id]
        assert [job.id for job in await app.afind()] == [mine.id]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RuntimeError("token=hunter2"), "the authorizer raised RuntimeError"),
        (None, "the authorizer returned NoneType, not True or False"),
        (1, "the authorizer returned int, not True or False"),
        ("yes", "the authorizer returned str, not True or False"),
    ],
    ids=["raises", "None", "number", "text"],
)
def test_an_authorizer_that_is_broken_refuses(apps: Apps, answer: object, why: str, caplog: pytest.LogCaptureFixture):
    """J6.5: fails closed, and the log says so, without what it raised."""
    job = stored_job(apps)
    app = judged(apps, Judge(answer))
    with pytest.raises(NotAuthorizedError, match=why):
        app.cancel(job)
    assert why in caplog.text
    assert "hunter2" not in caplog.text
    assert apps().get(job).status is JobStatus.PENDING


def test_without_an_authorizer_everything_is_allowed(apps: Apps):
    """J6.5: the default."""
    app, job = apps(), stored_job(apps)
    with app.acting_as("anybody"):
        assert app.get(job).args == (MARK, 2)
        assert app.cancel(job)
        app.check_may("export", job)


def look_around(number: int) -> str:
    """A body that uses the application, for itself and for a principal."""
    app = jobs.APPS["judged"]
    app.nodes()
    with app.acting_as("the job's own"):
        app.queues()
    return str(number)


def test_the_authorizer_is_not_called_by_the_engine_and_bodies_act_as_the_program(apps: Apps):
    """J6.5: claims, retries and outcomes need no principal; a body does not act for the user of its worker."""
    judge = Judge(lambda principal, action, job: action in ("enqueue", "nodes", "queues", "get"))
    app = judged(apps, judge)
    jobs.APPS["judged"] = app
    body, fail = app.job(look_around), app.job(max_retries=1)(jobs.fail_at_first)
    with app.acting_as("ann"):
        handles = [body.enqueue(1), fail.enqueue("x")]
        with app.worker():
            for handle in handles:
                assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
    asked = [(principal, action) for principal, action, job in judge.asked if action not in ("enqueue", "get")]
    assert asked == [(None, "nodes"), ("the job's own", "queues")]
    assert {principal for principal, action, _ in judge.asked if action in ("enqueue", "get")} == {"ann"}


def test_bodies_that_run_in_the_callers_thread_are_the_program_itself(apps: Apps):
    """J6.5: also where a test works jobs off by itself; the authorizer stays with the application there."""
    judge = Judge()
    app = judged(apps, judge)
    jobs.APPS["judged"] = app
    body = app.job(look_around)
    with isolated(app, url=app.url), app.acting_as("ann"):
        body.enqueue(1)
        drain(app)
    asked = [(principal, action) for principal, action, _ in judge.asked]
    assert asked == [("ann", "enqueue"), (None, "nodes"), ("the job's own", "queues")]


def test_acting_as_ends_where_it_ends_and_can_be_nested(apps: Apps):
    """J6.5: the principal is that of the innermost block; None outside."""
    judge = Judge()
    app = judged(apps, judge)
    app.nodes()
    with app.acting_as("ann"):
        with app.acting_as("bob"):
            app.nodes()
        app.nodes()
    app.nodes()
    assert [principal for principal, _, _ in judge.asked] == [None, "bob", "ann", None]


def test_an_authorizer_may_look_jobs_up_itself(apps: Apps):
    """J6.5: its own calls of the application are not authorized again."""
    job = stored_job(apps)
    judge = Judge()
    app = judged(apps, judge)
    judge.answer = lambda principal, action, seen: len(app.find().items) == 1
    assert app.cancel(job)
    assert judge.actions() == ["cancel"]


def test_the_principal_can_be_anything_and_its_secrets_stay_out_of_the_error(apps: Apps):
    """J6.5: what is shown of it is its text."""

    class Session:
        def __str__(self) -> str:
            return "ann (token=hunter2)"

    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

    app = judged(apps, Judge(answer=False))
    for principal, name in ((Session(), "ann (token=[REDACTED])"), (Mute(), "Mute"), ("x" * 500, "x" * 100)):
        with app.acting_as(principal), pytest.raises(NotAuthorizedError) as caught:
            app.nodes()
        assert caught.value.principal == name


def test_check_may_checks_custom_verbs(apps: Apps):
    """J6.5: by id, by job, or without one."""
    job = stored_job(apps)
    judge = Judge(lambda principal, action, seen: seen is not None and seen.params == {"owner": "ann"})
    app = judged(apps, judge)
    app.check_may("export", job)
    app.check_may("export", str(job))
    app.check_may("export", app.get(job))
    with pytest.raises(NotAuthorizedError, match="may not export: the authorizer refused"):
        app.check_may("export")
