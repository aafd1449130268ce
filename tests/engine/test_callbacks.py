"""`on_success` and `on_failure`: jobs that follow an outcome, in every form they can be written."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zlib import compress, decompress

import pytest

from tests.engine import callback_bodies as bodies
from tests.engine.apps import LONG, Apps, count, query, settled, until
from tests.engine.jobs import seen
from tests.support.facts import rows
from windlass import (
    RESULT,
    DroppedResult,
    Job,
    JobFailedError,
    JobResult,
    JobStatus,
    Priority,
    Windlass,
)
from windlass.spi import CallShape
from windlass.submission.codec import JsonSerializer

MORNING = datetime(2030, 1, 2, 8, tzinfo=UTC)


def run(app: Windlass, *handles, expected: int = 1) -> None:
    """Have a worker end these jobs, and what follows from them."""
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
        until(lambda: len(seen) >= expected)
        until(lambda: not [job for job in app.find() if job.status in (JobStatus.PENDING, JobStatus.RUNNING)])


def children(app: Windlass, parent: UUID) -> list[Job]:
    return [job for job in app.find() if job.parent_id == parent]


@pytest.mark.parametrize("callback", [bodies.report, bodies.areport, bodies.report_untyped], ids=lambda f: f.__name__)
def test_a_job_follows_a_success_with_its_result(app: Windlass, callback):
    """J5.5: a registered job, sync or async, annotated or not, takes one JobResult."""
    double = app.job(tags=["shop"], params={"tenant": "acme"}, on_success=app.job(callback))(bodies.double)
    handle = double.enqueue(21)
    run(app, handle)
    (result,) = seen
    assert isinstance(result, JobResult)
    assert (result.job_id, result.target, result.args, result.kwargs) == (
        handle.id,
        app.get(handle.id).target,
        (21,),
        {},
    )
    assert (result.tags, result.params) == (("shop",), {"tenant": "acme"})
    assert (result.succeeded, result.failed, result.value, result.attempts) == (True, False, 42, 1)
    assert (result.reason, result.error, result.error_class) == (None, None, None)
    assert result.run_ms == app.get(handle.id).run_ms


def test_a_job_follows_a_failure_with_its_error(app: Windlass):
    """J5.5, J5.4: the sanitised error and the reason come along."""
    handle = app.job(on_failure=app.job(bodies.report))(bodies.fail).enqueue("password=hunter2secret")
    run(app, handle)
    (result,) = seen
    assert (result.succeeded, result.failed, result.value) == (False, True, None)
    assert (result.reason, result.error_class, result.attempts) == ("retry_exhausted", "ValueError", 1)
    assert result.error == app.get(handle.id).error == "ValueError: password=[REDACTED]"


@pytest.mark.parametrize(
    "callback",
    [bodies.context_and_error, bodies.typed_context_and_error, bodies.context_and_any_error],
    ids=lambda f: f.__name__,
)
def test_a_failure_callback_may_take_context_and_error(app: Windlass, callback):
    """J5.5: `(ctx, error)` as in the seed; ctx is the JobResult, error an exception one could raise."""
    handle = app.job(bodies.fail).using(on_failure=app.job(callback), params={"file": 7}).enqueue("boom")
    run(app, handle)
    ((ctx, error),) = seen
    assert (ctx.job_id, ctx.params) == (handle.id, {"file": 7})
    assert isinstance(error, JobFailedError)
    assert (error.job_id, error.error, error.error_class) == (handle.id, "ValueError: boom", "ValueError")
    assert "boom" in str(error)


def test_an_error_parameter_annotated_str_gets_text(app: Windlass):
    """J5.5: `error: str`."""
    run(app, app.job(bodies.fail).using(on_failure=app.job(bodies.context_and_text)).enqueue("boom"))
    assert seen[0][1] == "ValueError: boom"


def test_a_plain_function_follows_if_it_is_allowed(apps: Apps):
    """J5.5, J6.3: no decorator, but a module that `allow` admits."""
    app = apps(allow=["tests.engine.callback_bodies"])
    run(app, app.bind(bodies.double, 4).using(on_success=bodies.report).enqueue())
    assert seen[0].value == 8


def test_a_call_has_its_own_arguments(app: Windlass):
    """J5.5: `clean_up.bind(RESULT, file_id)`: RESULT is what the job returned."""
    take = app.job(bodies.take_value)
    double = app.job(bodies.double)
    first = double.using(on_success=take.bind(RESULT, "first")).enqueue(1)
    second = double.using(on_success=take.bind(note="second", value=RESULT)).enqueue(2)
    third = double.using(on_success=app.bind(bodies.take_value, 7, note="third")).enqueue(3)
    run(app, first, second, third, expected=3)
    assert sorted(seen) == [(2, "first"), (4, "second"), (7, "third")]


def test_result_is_a_job_result_where_the_parameter_is_annotated_so(app: Windlass):
    """J5.5: a parameter annotated JobResult, and for a failure too."""
    take = app.job(bodies.take_outcome)
    good = app.job(bodies.double).using(on_success=take.bind("good", RESULT)).enqueue(1)
    bad = app.job(bodies.fail).using(on_failure=take.bind("bad", result=RESULT)).enqueue("boom")
    run(app, good, bad, expected=2)
    found = dict(seen)
    assert (found["good"].job_id, found["good"].value) == (good.id, 2)
    assert (found["bad"].job_id, found["bad"].error) == (bad.id, "ValueError: boom")


def test_values_keep_their_types(app: Windlass):
    """J5.5, J1.1: arguments and value by the annotations of the job, RESULT by those of the callback."""
    order = bodies.Order(7, MORNING)
    ship = app.job(bodies.ship)
    first = ship.using(on_success=app.job(bodies.report)).enqueue(order, copies=2)
    second = ship.using(on_success=app.job(bodies.take_orders).bind(RESULT, at=MORNING)).enqueue(order)
    run(app, first, second, expected=2)
    (result,) = (item for item in seen if isinstance(item, JobResult))
    assert (result.args, result.kwargs, result.value) == ((order,), {"copies": 2}, [order, order])
    assert ([order], MORNING) in seen
    (callback,) = children(app, first.id)
    assert callback.args == (result,)


def test_arguments_that_look_like_ours_stay_as_they_are(app: Windlass):
    """J5.5: nothing a user passes is taken for a placeholder."""
    odd = {"$windlass": "uuid", "value": "outcome"}
    odder = {"$windlass": "callback"}
    take = app.job(bodies.take_mapping)
    double = app.job(bodies.double)
    calls = [take.bind(RESULT, odd), take.bind(facts=odder, value=None)]
    run(app, *(double.using(on_success=call).enqueue(1) for call in calls), expected=2)
    assert (2, odd) in seen
    assert (None, odder) in seen


def test_a_callback_gets_the_marker_of_a_dropped_result(app: Windlass):
    """J1.6, J5.5: the marker, not the value; the callback follows all the same."""
    run(app, app.job(bodies.too_much).using(on_success=app.job(bodies.report)).enqueue())
    assert isinstance(seen[0].value, DroppedResult)
    assert "100,002 bytes" in seen[0].value.reason


def test_a_callback_runs_after_a_job_with_large_arguments(app: Windlass):
    """J5.5, J1.6: the limit on payloads is for what users enqueue; with the outcome around them they may be over it."""
    text = "x" * 102_000
    run(app, app.job(bodies.fail).using(on_failure=app.job(bodies.report)).enqueue(text))
    assert seen[0].args == (text,)


def test_a_callback_runs_without_unreadable_arguments(app: Windlass, apps: Apps):
    """J5.5: a damaged row fails, and its callback still follows."""
    handle = app.job(bodies.double).using(on_failure=app.job(bodies.report)).enqueue(1)
    rows(apps.url, "UPDATE windlass_job SET args = 'garbage'")
    with app.worker():
        assert handle.join(timeout=LONG) is JobStatus.FAILED
        until(lambda: seen)
    assert (seen[0].args, seen[0].kwargs, seen[0].reason) == ((), {}, "poison_payload")
    assert seen[0].error_class == "SerializationError"


class Compressed(JsonSerializer):
    """Texts in a private format."""

    def encode_arguments(self, shape: CallShape, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> str:
        return b64encode(compress(super().encode_arguments(shape, args, kwargs, limit).encode())).decode()

    def decode_arguments(self, shape: CallShape, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return super().decode_arguments(shape, decompress(b64decode(text)).decode())


def test_callbacks_use_a_custom_serializer(apps: Apps):
    """J5.5: it writes their arguments."""
    app = apps(serializer=Compressed())
    double = app.job(bodies.double)
    first = double.using(on_success=app.job(bodies.report)).enqueue(21)
    second = double.using(on_success=app.job(bodies.take_value).bind(RESULT, note="x")).enqueue(4)
    run(app, first, second, expected=2)
    (result,) = (item for item in seen if isinstance(item, JobResult))
    assert (result.args, result.value) == ((21,), 42)
    assert (8, "x") in seen


class Refusing(JsonSerializer):
    """Takes nothing that belongs to a callback."""

    def encode_arguments(self, shape: CallShape, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> str:
        if any(isinstance(value, JobResult) for value in args):
            raise RuntimeError("no results here")
        return super().encode_arguments(shape, args, kwargs, limit)


def test_a_serializer_that_refuses_a_callback_cannot_stop_the_outcome(apps: Apps):
    """J5.5: the job has succeeded; the callback is there, and fails for want of its arguments."""
    app = apps(serializer=Refusing())
    handle = app.job(bodies.double).using(on_success=app.job(bodies.report)).enqueue(1)
    with app.worker():
        assert handle.result(timeout=LONG) == 2
        (callback,) = until(lambda: children(app, handle.id))
        assert settled(app, callback.id).reason == "poison_payload"
    assert seen == []


def test_the_callback_inherits_queue_and_correlation_and_names_its_parent(app: Windlass):
    """J5.5: it stays with its job; without a correlation id the job's own id ties them."""
    callback = app.job(bodies.where_am_i)
    double = app.job(bodies.double)
    first = double.using(queue="billing", correlation_id="order-7", on_success=callback).enqueue(1)
    second = double.using(on_success=callback, tags=["not mine"], priority=Priority.HIGH).enqueue(1)
    run(app, first, second, expected=2)
    assert ("billing", "order-7", (), {}, first.id) in seen
    assert ("default", str(second.id), (), {}, second.id) in seen
    assert [job.priority for job in children(app, first.id) + children(app, second.id)] == [Priority.NORMAL] * 2


def test_the_callbacks_own_declaration_wins(app: Windlass):
    """J5.5: whatever its job says, and what a call says on top of that."""
    declared = app.job(queue="ops", priority=Priority.CRITICAL, tags=["alarm"], params={"a": 1}, max_retries=2)
    callback = declared(bodies.where_am_i)
    double = app.job(bodies.double)
    first = double.using(queue="billing", correlation_id="mine", on_success=callback).enqueue(1)
    call = callback.bind(RESULT).using(queue="night", correlation_id="its own", delay=0.01)
    second = double.using(correlation_id="mine", on_success=call).enqueue(1)
    run(app, first, second, expected=2)
    assert ("ops", "mine", ("alarm",), {"a": 1}, first.id) in seen
    assert ("night", "its own", ("alarm",), {"a": 1}, second.id) in seen
    (job,) = children(app, first.id)
    assert (job.priority, job.max_retries, job.tags) == (Priority.CRITICAL, 2, ("alarm",))
    assert [found.id for found in app.find(tag="alarm", queue="ops")] == [job.id]


def test_a_callback_may_have_callbacks(app: Windlass):
    """J5.5: it is a job like any other."""
    last = app.job(bodies.report)
    broken = app.job(on_failure=last)(bodies.fail_on)
    handle = app.job(bodies.double).using(on_success=broken).enqueue(1)
    run(app, handle, expected=2)
    assert seen[0] == handle.id
    assert (seen[1].error, seen[1].args[0].job_id) == ("RuntimeError: the callback is broken", handle.id)


def test_a_callback_that_fails_changes_nothing_about_its_job(app: Windlass):
    """J5.5: the outcome stands; the callback is retried as its own declaration says, and is a dead letter itself."""
    handle = app.job(bodies.double).using(on_success=app.job(max_retries=1)(bodies.fail_on)).enqueue(4)
    with app.worker():
        assert handle.result(timeout=LONG) == 8
        (callback,) = until(lambda: children(app, handle.id))
        callback = settled(app, callback.id)
    assert (callback.status, callback.attempts, callback.reason) == (JobStatus.FAILED, 2, "retry_exhausted")
    assert seen == [handle.id] * 2
    job = app.get(handle.id)
    assert (job.status, job.result, job.error, job.attempts) == (JobStatus.SUCCEEDED, 8, None, 1)


def test_a_decorators_callback_can_be_removed(app: Windlass):
    """api.md, Options: `using` wins, and None means none."""
    report, take = app.job(bodies.report), app.job(bodies.take_value)
    double = app.job(on_success=report)(bodies.double)
    none = double.using(on_success=None).enqueue(1)
    other = double.using(on_success=take.bind(RESULT, "other")).enqueue(2)
    run(app, none, other)
    assert seen == [(4, "other")]
    assert children(app, none.id) == []


def test_jobs_without_callbacks_store_no_options(app: Windlass, apps: Apps):
    """J5.5: the common case is free."""
    app.job(bodies.double).enqueue(1)
    app.job(bodies.double).using(on_success=None, on_failure=None).enqueue(1)
    assert query(apps.url, "SELECT DISTINCT options FROM windlass_job") == [(None,)]
    assert count(apps.url, "job") == 2
