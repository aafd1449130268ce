"""What can be a job: functions and methods of every kind, checked before they are stored and before they run."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Shop, count, settled
from windlass import (
    InvalidOptionError,
    JobStatus,
    PayloadTooLargeError,
    SerializationError,
    TargetNotAllowedError,
    Windlass,
)

SHOP = """
from windlass import Windlass

app = Windlass({url!r})

class Till:
    def __init__(self, rebate: int = 1) -> None:
        self.rebate = rebate

    @app.job
    def charge(self, amount: int) -> int:
        return amount - self.rebate

    @app.job
    async def acharge(self, amount: int) -> int:
        return amount - self.rebate

    @app.job
    @staticmethod
    def tax(amount: int) -> float:
        return amount * 0.2

    @app.job
    @classmethod
    def label(cls, amount: int) -> str:
        return f"{{cls.__name__}} {{amount}}"

    @classmethod
    @app.job
    def other_label(cls, amount: int) -> str:
        return f"{{amount}} {{cls.__name__}}"

    def plain(self, amount: int) -> int:
        return -amount

class SelfService(Till):
    pass
"""


def test_functions_and_coroutine_functions_run_with_their_arguments(app: Windlass):
    """J1.1: a job is a stored call of a function, and its result comes back."""
    add, aadd = app.job(jobs.add), app.job(jobs.aadd)
    with app.worker():
        handles = [add.enqueue(1, 2), add.enqueue(1, b=3), aadd.enqueue(2, 3), add.enqueue(a=3, b=3)]
        assert [handle.result(timeout=LONG) for handle in handles] == [3, 4, 5, 6]
    assert app.get(handles[0].id).target == "tests.engine.jobs:add"
    assert add(20, 22) == 42, "calling a job just calls the function"


@pytest.fixture
def till(apps: Apps, shop: Shop):
    """A program whose jobs are methods."""
    apps()  # migrates
    module = shop.load(SHOP.format(url=apps.url))
    yield module
    module.app.close()


def test_methods_of_every_kind_run_on_the_right_object(till):
    """J1.1: static, class and instance methods are targets; without `provide`, one object is made without arguments."""
    with till.app.worker():
        assert till.Till.charge.enqueue(10).result(timeout=LONG) == 9
        assert till.Till.acharge.enqueue(10).result(timeout=LONG) == 9
        assert till.Till.tax.enqueue(10).result(timeout=LONG) == 2.0
        assert till.Till.label.enqueue(10).result(timeout=LONG) == "Till 10"
        assert till.Till.other_label.enqueue(10).result(timeout=LONG) == "10 Till"
        inherited = till.SelfService.label.enqueue(10)
        assert inherited.result(timeout=LONG) == "SelfService 10"
    assert till.app.get(inherited.id).target.endswith(":SelfService.label")


def test_provided_objects_and_factories_are_what_methods_run_on(till):
    """J1.1: `app.provide(obj)` or `app.provide(cls, factory)` supplies the object, a factory's is made once."""
    made = []

    def factory() -> Any:
        made.append(till.Till(rebate=5))
        return made[-1]

    with till.app.worker():
        till.app.provide(till.Till(rebate=3))
        assert till.Till.charge.enqueue(10).result(timeout=LONG) == 7
        till.app.provide(till.Till, factory)
        assert [till.Till.charge.enqueue(n).result(timeout=LONG) for n in (10, 20)] == [5, 15]
    assert len(made) == 1


def test_bind_takes_jobs_methods_and_whatever_is_allowed(till, apps: Apps):
    """J1.1: `app.bind(Class.method, …)` is a call as a value; plain functions and methods need `allow`."""
    with till.app.worker():
        assert till.app.bind(till.Till.charge, 4).enqueue().result(timeout=LONG) == 3
    allowing = apps(allow=[till.__name__, "tests.engine.jobs"])
    with allowing.worker():
        assert allowing.bind(till.Till.plain, 4).enqueue().result(timeout=LONG) == -4
        assert allowing.bind(jobs.add, 4, b=5).using(queue="sums").enqueue().result(timeout=LONG) == 9
    with pytest.raises(TargetNotAllowedError, match=r"allow=\['tests.engine.jobs'\]"):
        till.app.bind(jobs.add, 1, 2)


def refusals(app: Windlass) -> dict[str, tuple[type[Exception], Any]]:
    """Ways to enqueue that must fail, each with its error."""
    add: Any = app.job(jobs.add)
    note: Any = app.job(jobs.note)

    def local(a: int) -> int:
        return a

    def using(**options: Any) -> Any:
        return lambda: add.using(**options).enqueue(1, 2)

    return {
        "an argument too few": (TypeError, lambda: add.enqueue(1)),
        "an argument too many": (TypeError, lambda: add.enqueue(1, 2, 3)),
        "an unknown argument": (TypeError, lambda: add.enqueue(1, c=2)),
        "another type than annotated": (SerializationError, lambda: add.enqueue(1, "2")),
        "an object": (SerializationError, lambda: note.enqueue(object())),
        "a lambda": (SerializationError, lambda: app.bind(lambda: 1).enqueue()),
        "a local function": (SerializationError, lambda: app.job(local).enqueue(1)),
        "a partial": (SerializationError, lambda: app.bind(partial(jobs.add, 1), 2).enqueue()),
        "a bound method": (SerializationError, lambda: app.bind([].append, 2).enqueue()),
        "a stranger": (TargetNotAllowedError, lambda: app.bind(jobs.fail, "x").enqueue()),
        "too much": (PayloadTooLargeError, lambda: note.enqueue("x" * 102_400)),
        "one too large among good ones": (
            PayloadTooLargeError,
            lambda: app.enqueue_many([note.bind("fine"), note.bind("x" * 102_400)]),
        ),
        "a negative number of retries": (InvalidOptionError, using(max_retries=-1)),
        "an unknown priority": (InvalidOptionError, using(priority=10)),
        "a queue with a blank": (InvalidOptionError, using(queue="my queue")),
        "a tag of 65 characters": (InvalidOptionError, using(tags=["x" * 65])),
        "a key of 256 characters": (InvalidOptionError, using(business_key="x" * 256)),
        "a key with a line break": (InvalidOptionError, using(idempotency_key="a\nb")),
        "an unknown policy": (InvalidOptionError, using(on_conflict="ignore")),
        "an executor that does not exist": (InvalidOptionError, using(executor="gpu")),
        "a time without a zone": (InvalidOptionError, using(run_at=datetime(2030, 1, 1))),  # noqa: DTZ001
        "a delay and a time": (InvalidOptionError, using(run_at=datetime(2030, 1, 1, tzinfo=UTC), delay=1)),
        "params that are no JSON": (SerializationError, using(params={"x": object()})),
    }


def test_bad_input_is_refused_with_its_own_error_and_stores_nothing(app: Windlass, apps: Apps):
    """J1.1, J1.6: every bad input is an error at enqueue, and no table has a row of it."""
    for name, (kind, enqueue) in refusals(app).items():
        with pytest.raises(kind) as caught:
            enqueue()
        assert str(caught.value), name
        assert [count(apps.url, table) for table in ("job", "hot", "key", "live_key", "job_tag")] == [0] * 5, name


async def test_bad_input_is_refused_by_the_async_twins_too(app: Windlass, apps: Apps):
    """J1.1: `aenqueue` checks like `enqueue`."""
    add = app.job(jobs.add)
    with pytest.raises(TypeError, match="missing a required argument"):
        await add.aenqueue(1)  # type: ignore[call-arg]
    with pytest.raises(PayloadTooLargeError):
        await app.job(jobs.note).aenqueue("x" * 102_400)
    assert count(apps.url, "job") == 0


BEFORE = """
from windlass import Windlass
app = Windlass({url!r})
@app.job(max_retries=3)
def send(to: str) -> None: ...
"""
AFTER = """
from windlass import Windlass
app = Windlass({url!r})
entered = []
@app.job(max_retries=3)
def send({signature}) -> None:
    entered.append(1)
"""


@pytest.mark.parametrize("signature", ["to: str, subject: str", "to: int", "recipient: str"])
def test_a_signature_that_changed_fails_the_job_without_entering_it(apps: Apps, shop: Shop, signature: str):
    """J1.1: drift is a SerializationError; the body is not entered, no attempt is spent, no retry follows."""
    apps()
    old = shop.load(BEFORE.format(url=apps.url))
    job_id = old.send.enqueue(to="ops").id
    old.app.close()
    new = shop.load(AFTER.format(url=apps.url, signature=signature))
    with new.app.worker():
        job = settled(new.app, job_id)
    new.app.close()
    assert (job.status, job.reason, job.error_class) == (JobStatus.FAILED, "poison_payload", "SerializationError")
    assert new.entered == []
    assert job.attempts == 0
    assert "send()" in str(job.error)


def test_a_signature_that_grew_a_default_takes_old_jobs(apps: Apps, shop: Shop):
    """J1.1: arguments are bound again at run, so compatible changes are no drift."""
    apps()
    old = shop.load(BEFORE.format(url=apps.url))
    job_id = old.send.enqueue("ops").id
    old.app.close()
    new = shop.load(AFTER.format(url=apps.url, signature="to: str, subject: str = ''"))
    with new.app.worker():
        assert settled(new.app, job_id).status is JobStatus.SUCCEEDED
    new.app.close()
    assert new.entered == [1]
