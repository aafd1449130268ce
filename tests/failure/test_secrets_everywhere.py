"""The corpus end to end: secrets that jobs say, in errors, log lines and progress, are seen again nowhere."""

import dataclasses
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.engine.apps import Apps, query
from tests.failure import leaky_jobs
from tests.failure.corpus import SECRETS, leaks
from windlass import Event, Job, JobContext, JobFailedError, JobHandle, JobStatus, Settings, Windlass
from windlass.cli.main import main
from windlass.failure.redaction import REDACTED

LONG = 120.0
OFFICE = "from windlass import Windlass\n\napp = Windlass(allow=['tests.failure.leaky_jobs'])\n"
NAMES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'windlass%'",
    "postgresql": "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'windlass%'",
}


def everything_stored(url: str) -> str:
    """Every value of every table there is."""
    tables = [name for (name,) in query(url, NAMES[url.partition(":")[0]])]
    assert {"windlass_job", "windlass_attempt", "windlass_job_log", "windlass_progress"} <= set(tables)
    return "\n".join(str(value) for table in tables for row in query(url, f"SELECT * FROM {table}") for value in row)


class Recorder:
    """Everything that Windlass says while the jobs run."""

    def __init__(self, app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
        self.events: list[Event] = []
        self._caplog = caplog
        app.on(Event)(self.events.append)

    def event_texts(self) -> str:
        return "\n".join(str(value) for event in self.events for value in dataclasses.asdict(event).values())

    def log(self) -> str:
        """But not what bodies log themselves: those lines go to the program's own handlers as they are."""
        ours = [record for record in self._caplog.records if record.name != "windlass.job"]
        return "\n".join(self._caplog.handler.format(record) for record in ours)


def run_all(app: Windlass) -> list[JobHandle[None]]:
    """Every secret as a job on a thread, and as one in a process of its own; in one run of one worker."""
    leak = app.job(max_retries=1, on_failure=leaky_jobs.clean_up)(leaky_jobs.leak)
    app.job(leaky_jobs.clean_up)
    numbers = range(len(SECRETS))
    calls = [leak.bind(number) for number in numbers]
    calls += [leak.using(executor="process", on_failure=None).bind(number) for number in numbers]
    handles = app.enqueue_many(calls)
    with app.worker(concurrency=8):
        for handle in handles:
            assert handle.join(timeout=LONG) is JobStatus.FAILED
    return handles


def texts_of_handles(handles: list[JobHandle[None]]) -> str:
    texts = []
    for handle in handles:
        with pytest.raises(JobFailedError) as caught:
            handle.result(timeout=LONG)
        texts.append(f"{caught.value}\n{caught.value!r}\n{caught.value.error}")
    return "\n".join(texts)


def texts_of_commands(url: str, handles: list[JobHandle[None]], folder: Path, patch: pytest.MonkeyPatch) -> str:
    """The list of all, and one in nine shown whole: all of them come from tables that were searched already."""
    (folder / "office.py").write_text(OFFICE)
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    shown = [("job", "list", "--limit", "1000"), ("job", "list", "--limit", "1000", "--json")]
    for handle in handles[::9]:
        shown += [("job", "show", str(handle.id)), ("job", "show", "--json", str(handle.id))]
        shown += [("job", "tail", str(handle.id)), ("job", "tail", "--json", str(handle.id))]
    environ = {"WINDLASS_URL": url, "WINDLASS_APP": "office:app"}
    outputs = [CliRunner().invoke(main, arguments, env=environ).output for arguments in shown]
    sys.modules.pop("office").app.close()
    assert all(REDACTED in output for output in outputs)
    return "\n".join(outputs)


def assert_all_secrets_were_used(app: Windlass, jobs: list[Job]) -> None:
    """Or there would be nothing to find."""
    assert {(job.reason, job.attempts, job.error_class) for job in jobs} == {("non_retryable", 2, "ExceptionGroup")}
    for job in jobs:
        first, last = [attempt for attempt in app.history(job.id) if attempt.outcome != "released"]
        assert job.progress is not None
        for text in (job.error, first.error, first.traceback, last.error, last.traceback, job.progress.message):
            assert REDACTED in str(text), (SECRETS[job.args[0]].name, text)
        assert [line.level for line in app.log_lines(job.id)].count("WARNING") == 2


def test_no_secret_of_the_corpus_is_seen_again(
    apps: Apps, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """J5.3: not in any table, log, event, handle, callback, history, progress, kept line or output of a command."""
    caplog.set_level(logging.DEBUG, logger="windlass")
    leaky_jobs.callback_texts.clear()
    app = apps()
    recorder = Recorder(app, caplog)
    handles = run_all(app)
    jobs = [app.get(handle.id) for handle in handles]
    assert_all_secrets_were_used(app, jobs)
    places = {
        "tables": everything_stored(apps.url),
        "events": recorder.event_texts(),
        "log": recorder.log(),
        "handles": texts_of_handles(handles),
        "callbacks": "\n".join(leaky_jobs.callback_texts),
        "jobs": "\n".join(map(str, jobs)),
        "commands": texts_of_commands(apps.url, handles, tmp_path, monkeypatch),
    }
    for place, text in places.items():
        assert REDACTED in text, place
        assert leaks(text) == [], place


def say(text: str) -> None:
    JobContext.current().progress(1, 2, text)
    JobContext.current().log.info(text)
    raise ValueError(text)


class Initials:
    """A sanitizer of the user's own that knows what no pattern can know."""

    def sanitize(self, error: BaseException) -> str:
        return f"{type(error).__name__}: {self.sanitize_text(str(error))}"

    def sanitize_text(self, text: str) -> str:
        return text.replace("Ann Example", "A. E.")


class Bad:
    """Gives no text, or raises."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def sanitize(self, error: BaseException) -> str:
        if self._answer is None:
            raise RuntimeError("hunter2")
        return self._answer


def test_a_sanitizer_of_texts_is_applied_everywhere(apps: Apps):
    """J5.3: errors, tracebacks, progress and kept lines; only what users themselves store is stored as it is."""
    app = apps(error_sanitizer=Initials(), settings=Settings())
    handle = app.job(say).using(params={"user": "yes"}).enqueue("Ann Example is unknown")
    with app.worker():
        handle.join(timeout=LONG)
    stored = everything_stored(apps.url)
    assert stored.count("A. E. is unknown") >= 5
    assert stored.count("Ann Example") == 1, "the argument"


@pytest.mark.parametrize("answer", [None, 7, b"x"], ids=["raises", "number", "bytes"])
def test_a_broken_sanitizer_lets_no_secret_through_and_is_logged(
    apps: Apps, answer: Any, caplog: pytest.LogCaptureFixture
):
    """J5.3: the default takes its place."""
    app = apps(error_sanitizer=Bad(answer))
    handle = app.job(leaky_jobs.leak).enqueue(0)
    with app.worker():
        handle.join(timeout=LONG)
    assert "the error sanitizer is broken" in caplog.text
    assert leaks(everything_stored(apps.url)) == []
    assert str(app.get(handle.id).error).startswith("RuntimeError: ")
