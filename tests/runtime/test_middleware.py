"""Middleware: code around the body of every job, entered where the body runs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Shop, settled
from windlass import ConfigurationError, JobContext, JobStatus, Windlass
from windlass.testing import drain, isolated


class Noted:
    """Notes down when it is entered and left, and on which thread."""

    def __init__(self, name: str) -> None:
        self.name = name

    @contextmanager
    def around(self, ctx: JobContext) -> Iterator[None]:
        assert ctx is JobContext.current()
        jobs.seen.append(f"enter {self.name}")
        try:
            yield
        finally:
            jobs.seen.append(f"leave {self.name} on {threading.current_thread().name}")


class Awaited:
    @asynccontextmanager
    async def around(self, ctx: JobContext) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        jobs.seen.append(f"enter {ctx.target}")
        yield
        jobs.seen.append("leave")


class ItemFailure:
    """Raises before the body, or after it."""

    def __init__(self, *, after: bool) -> None:
        self.after = after

    @contextmanager
    def around(self, ctx: JobContext) -> Iterator[None]:
        if not self.after:
            raise LookupError("no tenant")
        yield
        raise LookupError("the trace could not be sent")


class Forgiving:
    def around(self, ctx: JobContext) -> Any:
        return suppress(ValueError)


class NotAManager:
    def around(self, ctx: JobContext) -> Any:
        return None


def whereabouts() -> str:
    jobs.seen.append("body")
    return threading.current_thread().name


async def awhereabouts() -> str:
    jobs.seen.append("body")
    return threading.current_thread().name


async def asnooze() -> None:
    JobContext.current().snooze(60)


@pytest.mark.parametrize("body", [whereabouts, awhereabouts])
def test_the_first_one_is_outermost_and_all_are_entered_where_the_body_runs(apps: Apps, body: Any):
    """J10.2: on the thread of a function, on the loop of a coroutine; a plain context manager serves both."""
    app = apps(middleware=[Noted("outer"), Noted("inner")])
    job = app.job(body)
    with app.worker():
        place = job.enqueue().result(LONG)
    assert jobs.seen == ["enter outer", "enter inner", "body", f"leave inner on {place}", f"leave outer on {place}"]


def test_around_a_coroutine_it_may_be_async(apps: Apps):
    """J10.2: around a plain function it may not, and the error says what to do."""
    app = apps(middleware=[Awaited()])
    ajob, job = app.job(jobs.anote), app.job(jobs.note)
    with app.worker():
        assert ajob.enqueue("x").result(LONG) == "x"
        failed = settled(app, job.enqueue("y").id)
    assert jobs.seen == ["enter tests.engine.jobs:anote", "x", "leave"]
    assert failed.error is not None
    assert "Awaited.around() gave an async context manager for a function that is no coroutine" in failed.error


@pytest.mark.parametrize(("after", "entered"), [(False, []), (True, ["x", "x"])])
def test_its_error_is_the_error_of_the_attempt(apps: Apps, after: bool, entered: list[str]):
    """J10.2: it counts, and is retried, like one of the body."""
    app = apps(middleware=[ItemFailure(after=after)])
    job = app.job(max_retries=1)(jobs.note)
    with app.worker():
        ended = settled(app, job.enqueue("x").id)
    assert (ended.status, ended.attempts, ended.error_class) == (JobStatus.FAILED, 2, "LookupError")
    assert jobs.seen == entered


def test_an_error_that_is_suppressed_is_a_success_without_a_result(apps: Apps):
    """J10.2: as with any context manager."""
    app = apps(middleware=[Forgiving()])
    job, other = app.job(jobs.raise_it), app.job(jobs.afail)
    with app.worker():
        assert job.enqueue("plain").result(LONG) is None
        assert other.enqueue("x").result(LONG) is None


def test_a_middleware_that_returns_no_context_manager_fails_the_attempt(apps: Apps):
    """J10.2: the error names the middleware."""
    app = apps(middleware=[NotAManager()])
    job = app.job(jobs.anote)
    with app.worker():
        ended = settled(app, job.enqueue("x").id)
    assert (ended.error or "").startswith(
        "ConfigurationError: NotAManager.around() must give a context manager, got NoneType"
    )


def test_snoozing_goes_through_it(apps: Apps):
    """J10.2, J4.4: what leaves the body to steer it is no failure there either."""
    app = apps(middleware=[Noted("m")])
    with isolated(app):
        app.job(asnooze).enqueue()
        assert drain(app).snoozed == 1
    assert [note.split(" on ")[0] for note in jobs.seen] == ["enter m", "leave m"]


PROGRAM = """
import os
from contextlib import contextmanager
from windlass import JobContext, Windlass

LOG = []


class Noted:
    @contextmanager
    def around(self, ctx: JobContext):
        LOG.append((os.getpid(), ctx.attempt))
        yield


app = Windlass({url!r}, middleware=[Noted()])


@app.job(executor="process")
def log() -> list:
    return [os.getpid(), LOG]


@app.job(executor="process")
async def alog() -> list:
    return [os.getpid(), LOG]
"""


def test_middleware_is_entered_in_the_process_of_the_body(shop: Shop, sqlite_url: str):
    """J10.2: by the application that the process has."""
    module = shop.load(PROGRAM.format(url=sqlite_url))
    with module.app.worker():
        place, log = module.log.enqueue().result(90)
        assert log == [(place, 1)]
        assert module.alog.enqueue().result(90)[1]
    assert module.LOG == []
    module.app.close()


def test_a_process_that_does_not_find_the_application_runs_nothing_without_it(sqlite_url: str):
    """J10.2: rather than leave the middleware out."""
    apps = Apps(sqlite_url)
    app = apps(middleware=[Noted("m")])
    job = app.job(executor="process")(jobs.add)
    with app.worker():
        ended = settled(app, job.enqueue(1, 2).id)
    assert "it needs its serializer, invocation resolver or middleware" in (ended.error or "")
    apps.close()


class Recording:
    """An executor provider that notes what it is given to call."""

    def __init__(self) -> None:
        self.called: list[Any] = []

    def executor(self, kind: str) -> Any:
        return self

    async def run(self, invocation: Any, /) -> object:
        self.called.append(invocation.function)
        value = invocation.function(*invocation.args, **invocation.kwargs)
        return await value if asyncio.iscoroutine(value) else value

    async def close(self) -> None: ...


def test_without_middleware_the_function_itself_is_called(apps: Apps):
    """J10.2: nothing stands around it, so nothing is paid."""
    bare, wrapped = Recording(), Recording()
    for recording, middleware in ((bare, []), (wrapped, [Noted("m")])):
        app = apps(executors=recording, middleware=middleware)
        job = app.job(jobs.anote)
        with app.worker():
            job.enqueue("x").result(LONG)
    assert bare.called == [jobs.anote]
    assert len(wrapped.called) == 1
    assert wrapped.called != [jobs.anote]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ([Noted], r"got the class Noted; write Noted\(\)"),
        ([print], "must have a method around"),
        (Noted("m"), "must be a list of objects"),
        ("timing", "must be a list of objects"),
        ([None], "got None without one"),
    ],
)
def test_bad_middleware_is_refused_where_it_is_given(wrong: Any, complaint: str):
    """J10.2: when the application is made."""
    with pytest.raises(ConfigurationError, match=complaint):
        Windlass("sqlite://", middleware=wrong)
