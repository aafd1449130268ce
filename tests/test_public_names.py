"""The public surface: exactly what `windlass.__all__` says, sorted, and all of it documented."""

import dataclasses
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import windlass
from windlass.client.dead_letters import Alerts, DeadLetters
from windlass.client.limits import CircuitSwitch
from windlass.recurring.schedules import Schedules
from windlass.submission.handle import JobHandle
from windlass.submission.job_function import AsyncJobFunction, JobFunction
from windlass.worker import Worker


def words(text: str) -> list[str]:
    return text.split()


NAMES = [name for name in windlass.__all__ if name != "__version__"]
CLASSES = [name for name in NAMES if isinstance(getattr(windlass, name), type)]

SPECIFIED = words(
    """
    Attempt Backoff ConfigurationError DoNotRetry DuplicateBusinessKeyError Event Job JobCanceledError JobCompleted
    JobContext JobDeadLettered JobFailed JobFailedError JobHandle JobNotFoundError JobOptions JobRetrying JobStarted
    JobStatus JobTimedOut JobTimeoutError MigrationRequiredError NodeLost NonRetryable PayloadTooLargeError Priority
    RetryAfter SerializationError Settings StaleClaimError StoreUnavailableError TargetNotAllowedError
    TargetNotFoundError Windlass do_not_retry JobResult RESULT
    RetryPolicy ErrorSanitizer TargetPolicy InvocationResolver InstanceResolver ExecutorProvider Coordinator
    Alert AlertRaised DeadLetter DeadLetterGroup Redrive
    PollingStrategy Clock Authorizer
    Misfire Overlap every Reject RejectGroup
"""
)
"""Names of api.md that exist so far."""


def test_all_is_sorted_and_has_no_name_twice():
    assert sorted(windlass.__all__, key=lambda name: (not name.isupper(), name)) == windlass.__all__
    assert len(set(windlass.__all__)) == len(windlass.__all__)


def test_all_is_exactly_what_the_package_exports():
    exported = {
        name for name, value in vars(windlass).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert exported == set(NAMES)


def test_the_names_of_the_specification_are_there():
    assert set(SPECIFIED) - set(NAMES) == set()


@pytest.mark.parametrize("name", NAMES)
def test_everything_public_has_its_own_docstring(name: str):
    value: Any = getattr(windlass, name)
    assert (value.__doc__ or "").strip(), f"windlass.{name} says nothing"
    made_by_dataclass = str(value.__doc__).startswith(f"{name}(")
    assert not made_by_dataclass, f"windlass.{name} has only the docstring that dataclass makes"
    if isinstance(value, type):
        assert "__doc__" in vars(value), f"windlass.{name} inherits its docstring"


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class of ours defines itself."""
    for name, value in vars(cls).items():
        inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (inspect.isfunction(inner) or isinstance(inner, property)):
            yield name, inner


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_is_documented(name: str):
    cls = getattr(windlass, name)
    ours = [base for base in cls.__mro__ if base.__module__.startswith("windlass.")]
    silent = [f"{base.__name__}.{member}" for base in ours for member, value in members(base) if not value.__doc__]
    assert silent == []


WITH_VERBS: list[type] = [
    windlass.Windlass,
    windlass.Call,
    JobHandle,
    JobFunction,
    AsyncJobFunction,
    Worker,
    DeadLetters,
    Alerts,
    CircuitSwitch,
    Schedules,
]
"""Classes whose methods work on the store."""
WITHOUT_A_TWIN = {
    "Windlass": {
        "acting_as": "sets a context variable",
        "batch": "makes a value",
        "batch_handle": "makes a handle",
        "bind": "makes a value",
        "check_startable": "for a worker, before its loop runs",
        "circuit": "makes a handle",
        "exchange": "for windlass.testing; connects to nothing",
        "handle": "makes a handle",
        "job": "declares",
        "on": "declares",
        "pipeline": "declares",
        "provide": "declares",
        "recurring": "declares",
        "run_worker": "has a loop of its own and handles signals",
        "use_connection": "one object for `with` and `async with`",
        "worker": "one object for `with` and `async with`",
    },
    "Call": dict.fromkeys(
        (
            *("then", "using", "await_signal", "then_on_success", "then_on_failure", "when", "when_result", "branch"),
            "choose",
        ),
        "makes a value",
    ),
    "JobFunction": {"bind": "makes a value", "handle": "makes a handle", "using": "makes a value"},
    "AsyncJobFunction": {"bind": "makes a value", "handle": "makes a handle", "using": "makes a value"},
    "Worker": {
        "run": "has a loop of its own and handles signals",
    },
}
"""Public methods that do not touch the store, or have a reason to be there only once."""


def methods_of(cls: type) -> dict[str, Any]:
    """Public methods that a class has from us."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("windlass.")]
    names = {name for base in ours for name, value in members(base) if inspect.isfunction(value)}
    return {name: getattr(cls, name) for name in names}


@pytest.mark.parametrize("cls", WITH_VERBS, ids=lambda cls: cls.__name__)
def test_every_verb_that_touches_the_store_has_an_async_twin(cls: type):
    """api.md: `enqueue`/`aenqueue`, `result`/`aresult`: an `a` in front, the same parameters."""
    methods = methods_of(cls)
    twins = {name for name, method in methods.items() if inspect.iscoroutinefunction(method)}
    alone = {name for name in methods if name not in twins and f"a{name}" not in twins}
    assert alone == set(WITHOUT_A_TWIN.get(cls.__name__, ()))
    assert {name for name in twins if name[0] != "a" or name[1:] not in methods} == set()
    for twin in twins:
        assert parameters(methods[twin]) == parameters(methods[twin[1:]]), twin


def parameters(method: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults."""
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]


def test_a_handle_has_exactly_the_methods_of_its_protocol():
    """api.md: what `JobHandle` promises is there, and nothing more."""
    public = {name for name in dir(windlass.JobHandle) if not name.startswith("_")}
    assert public - {"id", "duplicate"} == set(methods_of(JobHandle))


def test_values_have_the_fields_of_the_specification():
    """api.md: `Job`, `JobResult` and `Attempt`."""
    job = words(
        """id target queue status priority args kwargs result error error_class reason attempts max_retries
        crash_count tags params idempotency_key business_key resource circuit node created_at due_at picked_at
        started_at finished_at wait_ms run_ms correlation_id parent_id batch_id superseded_by paused_from progress
        version"""
    )
    attempt = words("number node picked_at started_at ended_at wait_ms run_ms outcome error_class error traceback")
    result = words(
        """job_id target args kwargs tags params reason succeeded failed value error error_class run_ms attempts"""
    )
    assert {field.name for field in dataclasses.fields(windlass.JobResult)} == set(result)
    assert {field.name for field in dataclasses.fields(windlass.Job)} == set(job)
    assert {field.name for field in dataclasses.fields(windlass.Attempt)} == set(attempt)


def test_dead_letters_have_the_fields_of_the_specification():
    """api.md, P6.1: `DeadLetter`, `DeadLetterGroup`, `Alert` and `Redrive`."""
    letter = words(
        """job_id fingerprint tenant_id execution_id execution_key transition_key correlation_id resource_type
        resource_name transport platform terminal_status created_at_epoch_ms terminal_reason error_code error_message
        retryable retries_observed traceback host definition_hash"""
    )
    group = words("fingerprint target error_class sample count first_at last_at")
    alert = words("target error_hash error_class sample count first_job_id last_job_id first_at last_at")
    assert {field.name for field in dataclasses.fields(windlass.DeadLetter)} == set(letter)
    assert {field.name for field in dataclasses.fields(windlass.DeadLetterGroup)} == set(group)
    assert {field.name for field in dataclasses.fields(windlass.Alert)} == set(alert)
    assert words("selected redriven ids") == [field.name for field in dataclasses.fields(windlass.Redrive)][:3]


def test_the_version_is_a_text():
    assert windlass.__version__[0].isdigit()
