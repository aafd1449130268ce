"""Stable names and aliases of jobs, and enqueueing by name."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Shop, count, until
from windlass import (
    ConfigurationError,
    InvalidOptionError,
    JobStatus,
    SerializationError,
    TargetNotAllowedError,
    Windlass,
)
from windlass.testing import assert_enqueued, drain, inline, isolated

OLD = """
from windlass import Windlass
app = Windlass({url!r})
@app.job
def charge(number: int) -> str:
    return f"old {{number}}"
"""
NEW = """
from windlass import Windlass
app = Windlass({url!r})
@app.job(name="billing.charge", aliases=["shop.old:charge", {old!r}], queue="billing")
def collect(number: int) -> str:
    return f"new {{number}}"
class Till:
    @app.job(name="till.charge", aliases=["shop:Till.pay"])
    def charge(self, number: int) -> str:
        return f"{{type(self).__name__}} {{number}}"
    @classmethod
    @app.job(name="till.label")
    def label(cls, number: int) -> str:
        return f"{{cls.__name__}} label {{number}}"
    @app.job(name="till.tax")
    @staticmethod
    def tax(number: int) -> float:
        return number * 0.2
class SelfService(Till): ...
"""


@pytest.fixture
def new(apps: Apps, shop: Shop) -> Iterator[ModuleType]:
    """A program whose jobs have names."""
    apps()  # migrates
    module = shop.load(NEW.format(url=apps.url, old=f"{shop.name}:charge"))
    yield module
    module.app.close()


def test_a_job_is_stored_under_its_name(new: ModuleType):
    """J1.8: `@app.job(name=…)`; the default name is `module:qualname`."""
    handle = new.collect.enqueue(7)
    assert new.app.get(handle.id).target == "billing.charge"
    with new.app.worker():
        assert handle.result(timeout=LONG) == "new 7"


def test_a_stored_alias_runs_the_function_that_now_claims_it(apps: Apps, shop: Shop):
    """J1.8: what an earlier release stored as `module:qualname` runs after the function was moved and renamed."""
    apps()
    old = shop.load(OLD.format(url=apps.url))
    stored = old.charge.enqueue(7)
    old.app.close()
    module = shop.load(NEW.format(url=apps.url, old=f"{shop.name}:charge"))
    with module.app.worker():
        assert module.app.handle(stored.id).result(timeout=LONG) == "new 7"
    module.app.close()


def test_a_job_stored_before_its_function_got_a_name_still_runs(new: ModuleType):
    """J1.8: the default name of a function that has got a name leads to it as long as it stands there."""
    by_default = f"{new.__name__}:collect"
    handle = new.app.enqueue_by_name(by_default, [7])
    with new.app.worker():
        assert handle.result(timeout=LONG) == "new 7"
    assert {job.id for job in new.app.find(target=by_default)} == {handle.id}


def test_methods_have_names_and_an_inherited_one_its_own(new: ModuleType):
    """J1.8: also class and static methods; the name belongs to the class that declares it."""
    handles = [
        new.Till.charge.enqueue(1),
        new.Till.label.enqueue(2),
        new.Till.tax.enqueue(10),
        new.SelfService.charge.enqueue(3),
        new.app.enqueue_by_name("shop:Till.pay", [4]),
    ]
    targets = [new.app.get(handle.id).target for handle in handles]
    assert targets == ["till.charge", "till.label", "till.tax", f"{new.__name__}:SelfService.charge", "till.charge"]
    with new.app.worker():
        results = [handle.result(timeout=LONG) for handle in handles]
    assert results == ["Till 1", "Till label 2", 2.0, "SelfService 3", "Till 4"]


@pytest.mark.parametrize(
    ("name", "aliases"), [("a", []), ("c", ["a"]), ("c", ["b"]), ("b", [])], ids=["name", "alias", "two aliases", "its"]
)
def test_two_jobs_with_one_name_or_alias_are_refused(app: Windlass, name: str, aliases: list[str]):
    """J1.8: at declaration, with both places; the first keeps its names."""
    app.job(name="a", aliases=["b"])(jobs.add)
    with pytest.raises(
        ConfigurationError, match=r"two functions are registered as '[ab]': .*jobs\.py:\d+.*jobs\.py:\d+"
    ):
        app.job(name=name, aliases=aliases)(jobs.note)
    assert app.registry.targets == ("a",)
    assert drained(app, app.enqueue_by_name("b", [1, 2])) == 3


def drained(app: Windlass, handle: Any) -> Any:
    drain(app)
    return handle.result()


def test_a_module_that_is_read_again_replaces_its_names(app: Windlass):
    """J1.8: reloading a module declares its jobs anew; an alias that was taken away means nothing any more."""
    app.job(name="a", aliases=["b", "c"])(jobs.add)
    app.job(name="a", aliases=["c", "d"])(jobs.add)
    assert [name in app.registry for name in "abcd"] == [True, False, True, True]


@pytest.mark.parametrize("wrong", ["", "two words", "a\nb", "x" * 256, "ünlaut!", 7, None])
def test_names_are_checked(app: Windlass, wrong: Any):
    """J1.8: in `name`, in `aliases` and in `enqueue_by_name`; nothing is stored or registered."""
    attempts = [lambda: app.job(aliases=[wrong])(jobs.add), lambda: app.enqueue_by_name(wrong)]
    if wrong is not None:
        attempts.append(lambda: app.job(name=wrong)(jobs.add))
    for attempt in attempts:
        with pytest.raises(InvalidOptionError, match="letters, digits and"):
            attempt()
    with pytest.raises(InvalidOptionError, match=r"aliases must be a list of names, got 'a'; write aliases=\['a'\]"):
        app.job(aliases="a")(jobs.add)
    assert app.registry.targets == ()
    assert app.find().items == []


def test_a_local_function_with_a_name_is_a_job(app: Windlass):
    """J1.8: a job that a factory declares has no path to be found by, but a name."""

    @app.job(name="local.double")
    def double(number: int) -> int:
        return number * 2

    with app.worker():
        assert double.enqueue(4).result(timeout=LONG) == 8


def test_names_and_aliases_find_the_same_jobs(new: ModuleType):
    """J1.8: `find`, `retry_many` and the filters of dead letters take any of a job's names, and the job itself."""
    app = new.app
    with app.worker():
        for name in ("billing.charge", "shop.old:charge", f"{new.__name__}:charge"):
            handle = store_as(app, name)
            handle.join(timeout=LONG)
    for asked in ("billing.charge", "shop.old:charge", f"{new.__name__}:collect", new.collect):
        assert len(app.find(target=asked).items) == 3, asked
        assert len(app.dead_letters.find(target=asked).items) == 3, asked
        assert sum(group.count for group in app.dead_letters.groups(target=asked)) == 3, asked
        assert len(app.alerts.find(target=asked).items) == 3, asked
    assert app.find(target="billing.charges").items == []
    assert app.dead_letters.redrive(target="shop.old:charge", dry_run=True).selected == 3
    assert app.retry_many(target="shop.old:charge") == 3


def store_as(app: Windlass, name: str) -> Any:
    """A job that fails, stored under a name as an older release would have."""
    other = Windlass(app.url)
    handle = other.enqueue_by_name(name, ["not a number"])
    other.close()
    return app.handle(handle.id)


def test_the_testing_kit_knows_names_and_aliases(new: ModuleType):
    """J1.8: `assert_enqueued` and `inline` take the job, its name or an alias, however it was stored."""
    with isolated(new.app), inline(new.app):
        assert new.collect.enqueue(7).result() == "new 7"
        for asked in (new.collect, "billing.charge", "shop.old:charge"):
            assert_enqueued(asked, 7, app=new.app)
            assert_enqueued(asked, number=7, count=1, queue="billing", app=new.app)


def test_a_callback_is_stored_under_its_name(new: ModuleType):
    """J1.8, J5.5: callbacks are named like any job."""
    with new.app.worker():
        new.Till.tax.using(on_success=new.collect.bind(5)).enqueue(10).result(timeout=LONG)
        until(lambda: [job.result for job in new.app.find(target="billing.charge")] == ["new 5"])


def test_an_alias_in_the_lane_of_an_unknown_target_is_claimed_by_a_node_that_knows_it(new: ModuleType, apps: Apps):
    """J1.8, J6.3: what was passed over under an old name is taken by a node that claims the name as an alias."""
    app = apps()
    app.job(jobs.add)
    handle = store_as(app, "shop.old:charge")
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(handle.id)] == ["passed_over"])
    with new.app.worker():
        assert new.app.handle(handle.id).join(timeout=LONG) is JobStatus.FAILED
    assert app.history(handle.id)[0].outcome == "passed_over"


def test_the_policy_gets_the_name_and_not_the_alias(apps: Apps):
    """J1.8, J6.3: a policy judges the function that runs."""
    asked: list[str] = []

    class Noting:
        def allows(self, target: str) -> bool:
            asked.append(target)
            return True

    app = apps(target_policy=Noting())
    app.job(name="sums.add", aliases=["old:add"])(jobs.add)
    assert drained(app, app.enqueue_by_name("old:add", [1, 2])) == 3
    assert set(asked) == {"sums.add"}


PROCESS = """
from windlass import Windlass
from {package}_core import app
@app.job(name="numbers.double", aliases=["numbers.twice"], executor="process")
def double(number: int) -> int:
    return number * 2
"""


def test_a_process_job_is_found_by_its_name(apps: Apps, shop: Shop, tmp_path: Path):
    """J1.8, J4.2: even where the process must import the module that declares it, which the name does not contain."""
    apps()
    core = f"{shop.name}_core"
    (tmp_path / f"{core}.py").write_text(f"from windlass import Windlass\napp = Windlass({apps.url!r})\n")
    module = shop.load(PROCESS.format(package=shop.name))
    with module.app.worker():
        assert module.double.enqueue(4).result(timeout=LONG) == 8
        assert store_double(module.app).result(timeout=LONG) == 10
    module.app.close()


def store_double(app: Windlass) -> Any:
    other = Windlass(app.url)
    handle = other.enqueue_by_name("numbers.twice", [5], executor="process")
    other.close()
    return app.handle(handle.id)


@dataclass
class Order:
    id: UUID
    total: Decimal


SEEN: list[Any] = []


def receive(order: Order, at: datetime, *, tags: set[str], anything: Any = None, number: int = 0) -> None:
    SEEN.append((order, at, tags, anything, number))


async def test_arguments_given_by_name_are_restored_by_the_annotations(apps: Apps):
    """J1.8: stored without the code, and read by the signature of the function that runs."""
    SEEN.clear()
    at, order = datetime(2030, 1, 1, tzinfo=UTC), Order(UUID(int=7), Decimal("1.10"))
    web, app = apps(), apps()
    app.job(name="orders.receive")(receive)
    handle = await web.aenqueue_by_name("orders.receive", [order, at], {"tags": {"a", "b"}, "anything": at}, queue="x")
    assert web.get(handle.id).queue == "x"
    async with app.worker():
        await handle.ajoin(timeout=LONG)
    assert [(order, at, {"a", "b"}, at, 0)] == SEEN


def test_arguments_that_do_not_fit_fail_where_the_job_runs(apps: Apps):
    """J1.8, J1.1: they could not be checked before; the body is not entered."""
    web, app = apps(), apps()
    app.job(name="sums.add")(jobs.add)
    handle = web.enqueue_by_name("sums.add", [1], {"c": 2})
    drain(app)
    job = app.get(handle.id)
    assert (job.status, job.reason) == (JobStatus.FAILED, "poison_payload")


def test_a_job_that_is_declared_here_is_checked_by_name_too(app: Windlass, apps: Apps):
    """J1.8: with its signature, and with the options of its decorator under those of the call."""
    app.job(name="sums.add", queue="sums", max_retries=4)(jobs.add)
    handle = app.enqueue_by_name("sums.add", [1], {"b": 2}, max_retries=2)
    job = app.get(handle.id)
    assert (job.queue, job.max_retries, job.target) == ("sums", 2, "sums.add")
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        app.enqueue_by_name("sums.add", [1, 2], {"c": 2})
    with pytest.raises(InvalidOptionError, match="args must be a list of positional arguments, got 'ann'"):
        app.enqueue_by_name("sums.add", "ann")
    with pytest.raises(InvalidOptionError, match="kwargs must be a dict"):
        app.enqueue_by_name("sums.add", [1], [2])  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="unknown option 'quee'"):
        app.enqueue_by_name("sums.add", [1], quee="x")  # type: ignore[call-arg]
    with pytest.raises(SerializationError):
        app.enqueue_by_name("unknown.job", [object()])
    assert count(apps.url, "job") == 1


def test_the_run_checks_what_was_enqueued_by_name(app: Windlass):
    """J1.8, J6.3: a name is no permission: what is loaded and not admitted where it runs is FAILED there."""
    app.job(jobs.add)
    handle = app.enqueue_by_name("tests.engine.jobs:note", ["x"])
    drain(app)
    assert (app.get(handle.id).reason, jobs.seen) == ("target_not_allowed", [])


def test_a_policy_that_denies_a_job_declared_here_denies_it_by_name(apps: Apps):
    """J1.8, J6.3: what is known here and may not run is refused before it is stored."""

    class Never:
        def allows(self, target: str) -> bool:
            return False

    app = apps(target_policy=Never())
    app.job(name="sums.add")(jobs.add)
    with pytest.raises(TargetNotAllowedError):
        app.enqueue_by_name("sums.add", [1, 2])


NOTEBOOK = """
from windlass import ConfigurationError, Windlass
app = Windlass("sqlite://")
exec('@app.job(name="sums.add", aliases=["old:add"])\\ndef add(a, b): return a + b')
exec('\\n\\n@app.job(name="sums.add", aliases=["old:add"])\\ndef add(a, b): return a + b + 1')
try:
    exec('@app.job(name="sums.add")\\ndef subtract(a, b): return a - b')
except ConfigurationError as error:
    print(error)
from windlass.testing import inline
with inline(app):
    print(add.enqueue(1, 2).result())
"""


def test_a_cell_that_is_run_again_replaces_its_job_and_another_function_may_not():
    """J1.8: in an interactive session, the same function may be declared anew under its name."""
    ran = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, timeout=300, check=False)
    refused, result = ran.stdout.splitlines()
    assert refused.startswith("two functions are registered as 'sums.add'")
    assert (result, ran.returncode) == ("4", 0)
