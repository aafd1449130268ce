"""What cannot be a callback is refused when its job is enqueued, and nothing is stored."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.engine import callback_bodies as bodies
from tests.engine.apps import Apps, count
from windlass import (
    RESULT,
    InvalidOptionError,
    JobsSettings,
    PayloadTooLargeError,
    SerializationError,
    Settings,
    TargetNotAllowedError,
    Windlass,
)


def local() -> Any:
    def inner(result: Any) -> None: ...

    return inner


class Alarm:
    def ring(self, result: Any) -> None: ...


REFUSED = {
    "a lambda": (lambda result: None, SerializationError, "is a lambda"),
    "a local function": (local(), SerializationError, "is local to local"),
    "a method of one object": (Alarm().ring, SerializationError, "bound to one Alarm"),
    "a function nobody allowed": (bodies.report, TargetNotAllowedError, "callback_bodies:report may not run"),
}


@pytest.mark.parametrize("name", ["on_success", "on_failure"])
@pytest.mark.parametrize("what", REFUSED)
def test_callbacks_are_checked_like_any_target(app: Windlass, apps: Apps, name: Any, what: str):
    """J5.5, J6.3, J1.1: at enqueue, with the usual errors."""
    callback, kind, words = REFUSED[what]
    double = app.job(**{name: callback})(bodies.double)
    with pytest.raises(kind, match=words):
        double.enqueue(1)
    assert count(apps.url, "job") == 0


@pytest.mark.parametrize(
    "function",
    [bodies.needs_nothing, bodies.needs_three, bodies.needs_a_name, bodies.needs_a_number, bodies.wants_the_context],
    ids=lambda function: function.__name__,
)
def test_a_function_that_takes_something_else_is_refused(app: Windlass, apps: Apps, function: Any):
    """J5.5: the error says what a callback takes, what came, and what to write instead."""
    fail = app.job(on_failure=app.job(function))(bodies.fail)
    with pytest.raises(InvalidOptionError, match=r"on_failure: a callback takes one JobResult.*RESULT") as refused:
        fail.enqueue("boom")
    assert f"{function.__name__}(" in str(refused.value)
    assert count(apps.url, "job") == 0


def test_context_and_error_are_for_failures(app: Windlass):
    """J5.5: a success has no error to hand over."""
    double = app.job(on_success=app.job(bodies.context_and_error))(bodies.double)
    with pytest.raises(InvalidOptionError, match="on_success: a callback takes one JobResult, and"):
        double.enqueue(1)


@pytest.mark.parametrize("value", [7, "shop:report", object()], ids=["number", "name", "object"])
def test_an_invalid_callback_is_refused_where_it_is_written(app: Windlass, value: Any):
    """api.md, Options: already by the decorator."""
    with pytest.raises(InvalidOptionError, match=r"on_success must be a job, a function or a call such as"):
        app.job(on_success=value)


def test_a_job_with_options_still_needs_its_arguments_bound(app: Windlass):
    """J5.5: `using` alone is no call; the error says so."""
    report = app.job(bodies.report)
    with pytest.raises(InvalidOptionError, match=r"bind its arguments: \.bind\(RESULT\)"):
        app.job(on_success=report.using(queue="ops"))  # type: ignore[call-overload]


def test_a_call_with_wrong_arguments_is_refused_when_it_is_bound(app: Windlass):
    """J1.1: as everywhere."""
    take = app.job(bodies.take_value)
    with pytest.raises(TypeError, match="missing a required argument: 'note'"):
        take.bind(RESULT)  # type: ignore[call-arg]


def test_a_call_whose_arguments_cannot_be_stored_is_refused(app: Windlass, apps: Apps):
    """J1.1, J1.6: the parameter is named; what is too large says so."""
    take = app.job(bodies.take_value)
    double = app.job(bodies.double)
    with pytest.raises(SerializationError, match="argument 'value'"):
        double.using(on_success=take.bind("seven", "x")).enqueue(1)  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=r"argument 'note' = \[RESULT\].*one whole argument"):
        double.using(on_success=take.bind(RESULT, [RESULT])).enqueue(1)  # type: ignore[arg-type]
    small = apps(settings=Settings(jobs=JobsSettings(max_payload_bytes=1024)))
    for body in (bodies.take_value, bodies.double):
        small.job(body)
    too_large = small.bind(bodies.take_value, RESULT, "x" * 2000)
    with pytest.raises(PayloadTooLargeError, match=r"on_success: the arguments of take_value\(\) take 2,0\d\d bytes"):
        small.bind(bodies.double, 1).using(on_success=too_large).enqueue()
    assert count(apps.url, "job") == 0


def test_a_callback_has_no_keys(app: Windlass, apps: Apps):
    """J5.5: there is no caller to report a taken key to."""
    report = app.job(business_key="one at a time")(bodies.report)
    with pytest.raises(InvalidOptionError, match="has an idempotency or business key, which callbacks cannot have"):
        app.job(bodies.double).using(on_success=report).enqueue(1)
    assert count(apps.url, "job") == 0


def test_a_callback_has_no_connection(app: Windlass, apps: Apps):
    """J5.5: its row is stored by whichever worker ends the job."""
    call = app.job(bodies.report).bind(RESULT)
    refused = pytest.raises(InvalidOptionError, match="has a connection, which callbacks cannot have")
    with closing(sqlite3.connect(":memory:")) as mine, refused:
        app.job(bodies.double).using(on_success=call.using(connection=mine)).enqueue(1)
    assert count(apps.url, "job") == 0


def test_result_means_nothing_outside_of_callbacks(app: Windlass, apps: Apps):
    """J1.1: refused like anything that JSON cannot carry."""
    with pytest.raises(SerializationError, match=r"argument 'number' = RESULT cannot be stored: .* follows a job"):
        app.job(bodies.double).enqueue(RESULT)
    assert count(apps.url, "job") == 0
