"""Several applications on one database, in one process: each runs its own jobs, and none fails another's."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tests.engine.apps import LONG, Apps, settled, until
from windlass import InvalidOptionError, JobStatus, TargetNotAllowedError, Windlass
from windlass.testing import drain, isolated

MAIL = """
from windlass import JobResult, Windlass
app = Windlass({url!r})
sent = []
@app.job(max_retries=5)
def send(to: str) -> str:
    sent.append(to)
    return to
@app.job
def receipt(outcome: JobResult) -> None:
    sent.append(f"receipt of {{outcome.value}}")
class Post:
    @classmethod
    @app.job
    def letter(cls, to: str) -> str:
        return f"{{cls.__name__}} to {{to}}"
def plain() -> None: ...
"""
BILLING = """
import {mail} as mail
from windlass import Windlass
app = Windlass({url!r})
@app.job
def charge(number: int) -> int:
    mail.send.enqueue(f"customer {{number}}")
    return number
"""


@pytest.fixture
def programs(apps: Apps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Two programs on one database; the one has imported the other."""
    apps()  # migrates
    monkeypatch.syspath_prepend(tmp_path)
    names = {kind: f"{kind}_{uuid4().hex[:12]}" for kind in ("mail", "billing")}
    for kind, source in (("mail", MAIL), ("billing", BILLING)):
        (tmp_path / f"{names[kind]}.py").write_text(source.format(url=apps.url, **names))
    billing = __import__(names["billing"])
    found = SimpleNamespace(mail=sys.modules[names["mail"]], billing=billing)
    yield found
    for program in (found.mail, found.billing):
        program.app.close()
        del sys.modules[program.__name__]


def passed_over(app: Windlass, handle: Any) -> bool:
    return [attempt.outcome for attempt in app.history(handle.id)] == ["passed_over"]


@pytest.mark.parametrize(("ours", "theirs"), [("billing", "mail"), ("mail", "billing")])
def test_a_job_of_another_application_is_left_to_its_own_workers(programs: SimpleNamespace, ours: str, theirs: str):
    """J6.3: a function that carries another application's registration is unknown here, not denied."""
    other: ModuleType = getattr(programs, theirs)
    app: Windlass = getattr(programs, ours).app
    handle = other.send.enqueue("ann") if theirs == "mail" else other.charge.enqueue(7)
    with app.worker():
        until(lambda: passed_over(app, handle))
        assert (app.get(handle.id).status, app.get(handle.id).attempts) == (JobStatus.PENDING, 0)
    with other.app.worker():
        assert settled(other.app, handle.id).status is JobStatus.SUCCEEDED


def test_a_body_may_enqueue_jobs_of_another_application(programs: SimpleNamespace):
    """J6.3: `mail.send.enqueue` in a body of billing stores a job of mail, and only mail's worker runs it."""
    mail, billing = programs.mail, programs.billing
    with billing.app.worker():
        assert billing.charge.enqueue(7).result(timeout=LONG) == 7
    (job,) = mail.app.find(target=f"{mail.__name__}:send").items
    with mail.app.worker():
        assert settled(mail.app, job.id).result == "customer 7"
    assert mail.sent == ["customer 7"]


@pytest.mark.parametrize("as_call", [False, True], ids=["job", "call"])
def test_a_callback_may_be_a_job_of_another_application_on_the_same_database(programs: SimpleNamespace, as_call: bool):
    """J6.3, J5.5: it is checked by its own application, stored with the outcome, and run by its own workers."""
    mail, billing = programs.mail, programs.billing
    callback = mail.send.bind("ops") if as_call else mail.receipt
    with billing.app.worker():
        billing.charge.using(on_success=callback).enqueue(7).result(timeout=LONG)
    with mail.app.worker():
        until(lambda: len(mail.sent) == 2)
    assert sorted(mail.sent) == ["customer 7", "ops" if as_call else "receipt of 7"]


def test_a_callback_of_an_application_on_another_database_is_refused(
    programs: SimpleNamespace, apps: Apps, sqlite_url: str
):
    """J6.3: a callback is stored with its job's outcome, so another database would never see it."""
    elsewhere = Windlass(sqlite_url + ".other")
    job = elsewhere.job(programs.mail.plain)
    with pytest.raises(InvalidOptionError, match="application on another database"):
        programs.billing.charge.using(on_success=job).enqueue(7)
    elsewhere.close()
    assert programs.billing.app.find().items == []


def test_binding_a_method_of_another_application_names_that_application(programs: SimpleNamespace):
    """J6.3: what is another application's is not enqueued by this one."""
    with pytest.raises(TargetNotAllowedError, match="a job of another application"):
        programs.billing.app.bind(programs.mail.Post.letter, "ann")


def test_drain_leaves_jobs_of_another_application_too(programs: SimpleNamespace):
    """J6.3: the testing kit follows the same rule as a worker."""
    mail, billing = programs.mail, programs.billing
    with isolated(billing.app):
        billing.app.enqueue_many([mail.send.bind("ann")])
        assert drain(billing.app).passed_over == 1
        (job,) = billing.app.find().items
        assert job.status is JobStatus.PENDING


def test_an_old_name_of_a_job_of_another_application_is_not_denied(
    programs: SimpleNamespace, shop: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
):
    """J6.3: also where a module of this program merely imports the job: `from mail import send`."""
    mail, billing = programs.mail, programs.billing
    monkeypatch.setattr(billing, "send", mail.send, raising=False)
    handle = billing.app.enqueue_by_name(f"{billing.__name__}:send", ["ann"])
    with billing.app.worker():
        until(lambda: passed_over(billing.app, handle))
    assert handle.status() is JobStatus.PENDING
