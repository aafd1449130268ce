"""Predicates: which functions may be one, where they are stored and where they are called."""

import functools
import os

import pytest

from tests.flow import branch_bodies
from tests.flow.branch_bodies import BranchJobs
from windlass import (
    Condition,
    InvalidOptionError,
    SerializationError,
    TargetNotAllowedError,
    Windlass,
    group,
)
from windlass.submission.predicates import Predicates
from windlass.submission.registry import Registry
from windlass.submission.target import Denied, Known, Unknown

HERE = "tests.submission.test_predicates"


@pytest.fixture
def app():
    made = Windlass("sqlite://")
    yield made
    made.close()


@pytest.fixture
def jobs(app: Windlass) -> BranchJobs:
    return BranchJobs(app)


def of_no_job_module(_: object) -> bool:
    return True


class Rules:
    @staticmethod
    def holds(_: object) -> bool:
        return True


def stored(app: Windlass) -> int:
    return len(app.find().items)


def test_predicate_of_a_module_with_jobs_is_admitted(app: Windlass, jobs: BranchJobs):
    """J8.2: the module in which it is written declares a job of this application."""
    jobs.double.bind(1).when_result(branch_bodies.is_small, jobs.note.bind("x")).enqueue()
    assert stored(app) == 2


def test_predicate_of_another_module_needs_to_be_allowed(app: Windlass, jobs: BranchJobs):
    """J8.2, J6.3: denied by default; nothing is stored."""
    with pytest.raises(TargetNotAllowedError, match=f"allow=\\['{HERE}'\\]"):
        jobs.double.bind(1).when_result(of_no_job_module, jobs.note.bind("x")).enqueue()
    assert stored(app) == 0
    open_app = Windlass("sqlite://", allow=[HERE])
    open_jobs = BranchJobs(open_app)
    for predicate in (of_no_job_module, Rules.holds):
        open_jobs.double.bind(1).when_result(predicate, open_jobs.note.bind("x")).enqueue()
    open_app.close()


def test_job_may_be_a_predicate(app: Windlass, jobs: BranchJobs):
    """J8.2: its target is admitted."""
    is_small = app.job(branch_bodies.is_small)
    jobs.double.bind(1).when_result(is_small, jobs.note.bind("x")).enqueue()
    assert stored(app) == 2


def test_function_imported_into_a_module_with_jobs_is_no_predicate(jobs: BranchJobs):
    """J8.2: the module it is written in counts."""
    del jobs
    registry = Registry()
    registry.register(Windlass("sqlite://").job(branch_bodies.note))
    predicates = Predicates(registry)
    assert isinstance(predicates.resolve("tests.flow.branch_bodies:is_small"), Known)
    assert isinstance(predicates.resolve("tests.flow.branch_bodies:JobResult"), Denied)
    assert isinstance(predicates.resolve("tests.flow.branch_bodies:is_gone"), Unknown)
    assert isinstance(predicates.resolve("tests.nowhere:is_small"), Unknown)
    assert isinstance(predicates.resolve("os:unlink"), Denied)


def test_function_of_the_standard_library_is_refused(app: Windlass, jobs: BranchJobs):
    """J8.2, J6.3: also if a module with jobs imports it."""
    with pytest.raises(TargetNotAllowedError):
        jobs.double.bind(1).when_result(os.path.exists, jobs.note.bind("x")).enqueue()
    assert stored(app) == 0


def _local(app: Windlass):
    def inner(_: object) -> bool:
        return app is not None

    return inner


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (lambda number: number > 1, "is a lambda"),
        (_local, "is local to"),
        (functools.partial(branch_bodies.takes_two, 1), "is a partial"),
    ],
    ids=["lambda", "closure", "partial"],
)
def test_function_that_cannot_be_found_again_is_refused(app: Windlass, jobs: BranchJobs, predicate, message: str):
    """J8.2, J1.1: with the error for targets."""
    if predicate is _local:
        predicate = _local(app)
    with pytest.raises(SerializationError, match=message):
        jobs.double.bind(1).when_result(predicate, jobs.note.bind("x")).enqueue()
    assert stored(app) == 0


def test_predicate_that_does_not_take_one_argument_is_refused(app: Windlass, jobs: BranchJobs):
    """J8.2: where the flow is stored."""
    with pytest.raises(InvalidOptionError, match=r"takes one argument.*takes_two\(one: int, two: int\)"):
        jobs.double.bind(1).when_result(branch_bodies.takes_two, jobs.note.bind("x")).enqueue()  # type: ignore[arg-type]
    assert stored(app) == 0


def test_an_invalid_predicate_is_refused_where_it_is_written(jobs: BranchJobs):
    """J8.2: says what was expected, what came, and what to do."""
    call, step = jobs.double.bind(1), jobs.note.bind("x")
    refused = {
        "at least one pair": call.choose,
        "pairs of predicate and call": lambda: call.choose(branch_bodies.is_small),  # type: ignore[arg-type]
        "takes a Condition": lambda: call.branch(branch_bodies.is_small, step),  # type: ignore[arg-type]
        "is a function of one argument": lambda: call.when(7, step),  # type: ignore[arg-type]
        "the JobResult": lambda: Condition.custom("shop:is_small"),  # type: ignore[arg-type]
        "is a whole number": lambda: call.then_on_success(step, priority=1.5),  # type: ignore[arg-type]
        "printable characters": lambda: call.then_on_success(step, description="a\nb"),
        "at most 200": lambda: call.then_on_success(step, description="a" * 201),
        "is a job, a call, a flow": lambda: call.then_on_success(7),  # type: ignore[arg-type]
        "begins with one job": lambda: call.then_on_success(group(step)),
        "the last step here is a group": lambda: group(step).then(group(call)).when(branch_bodies.always, step),
        "neither description nor priority": lambda: group(step).flow.then_on_failure(step, priority=1),
    }
    for message, write in refused.items():
        with pytest.raises(InvalidOptionError, match=message):
            write()


def test_too_many_branches_are_refused(app: Windlass, jobs: BranchJobs):
    """J8.6: they are stored with their job."""
    flow = jobs.double.bind(1).then_on_success(jobs.note.bind("0"))
    for number in range(1, 101):
        flow = flow.then_on_success(jobs.note.bind(str(number)))
    with pytest.raises(InvalidOptionError, match="has 101 branches, more than 100"):
        flow.enqueue()
    assert stored(app) == 0
