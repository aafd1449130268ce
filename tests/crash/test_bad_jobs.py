"""Jobs that are broken in themselves: each ends in a way that says why, and takes nothing else with it."""

from typing import Any

import pytest

from tests.crash.programs import bodies, fragile
from tests.crash.programs.application import make_app
from tests.support.facts import literal, outcomes, rows, statuses
from tests.support.programs import STEADY_LEASES, Programs
from tests.support.waiting import until
from windlass import JobCompleted, JobFailedError, JobStatus, Windlass
from windlass.submission.codec import JsonSerializer

FRAGILE = fragile.__name__


def failure_of(handle: Any) -> JobFailedError:
    with pytest.raises(JobFailedError) as failed:
        handle.result(90)
    return failed.value


UNDECODABLE = ["{not json", '"text"', "[[1, 2, 3], {}]", '[["seven"], {}]', ""]


def damage(url: str, handle: Any, column: str, text: str) -> None:
    rows(url, f"UPDATE windlass_job SET {column} = '{text}' WHERE id = {literal(url, handle.id)}")


def test_arguments_that_cannot_be_decoded_fail_their_jobs_only(app: Windlass, store_url: str, programs: Programs):
    """J1.1: the body is not entered, the job is FAILED as `poison_payload`, no attempt is spent on it."""
    handles = [app.bind(bodies.note, n).enqueue() for n in range(10)]
    for handle, text in zip(handles, UNDECODABLE, strict=False):
        damage(store_url, handle, "args", text)
    with app.worker():
        failures = [failure_of(handle) for handle in handles[:5]]
        assert [handle.result(90) for handle in handles[5:]] == [5, 6, 7, 8, 9]
    for failure in failures:
        assert (failure.reason, failure.error_class) == ("poison_payload", "SerializationError")
        assert "note()" in failure.error
    ends = rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done WHERE status = 'FAILED'")
    assert ends == [(0, 0)]
    assert sorted(programs.ran()) == ["5", "6", "7", "8", "9"]


def test_a_row_that_was_damaged_elsewhere_does_not_delay_others(app: Windlass, store_url: str):
    """J1.1, J7.9: whatever was written into a job's row by hand, other jobs run and the worker lives."""
    options, tags, params, *others = [app.bind(bodies.note, n).enqueue() for n in range(10)]
    for handle, column in ((options, "options"), (tags, "tags"), (params, "params")):
        damage(store_url, handle, column, "{[not json")
    with app.worker():
        assert [handle.result(90) for handle in others] == list(range(3, 10))
        for handle in (options, params):
            failure = failure_of(handle)
            assert (failure.reason, failure.error_class) == ("poison_payload", "SerializationError")
        assert tags.result(90) == 1  # nothing that runs it reads them
        assert app.bind(bodies.note, 10).enqueue().result(90) == 10


class Unstorable(JsonSerializer):
    """A user's own serializer, whose text for one value no database accepts."""

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        if value == 3:
            return '"lone \udce9 surrogate"', None
        return ('"nul \0 byte"', None) if value == 4 else super().encode_result(value, annotation, limit)


def test_a_result_that_the_database_refuses_fails_its_job_only(store_url: str, programs: Programs):
    """J4.3: the flush is split until the bad row is alone: that job is `poison_payload`, the rest of it stands."""
    app = make_app(store_url, serializer=Unstorable())
    app.migrate()
    refused = [3, 4]
    with app.worker(concurrency=20):
        handles = [app.bind(bodies.hold, n).using(business_key=f"key-{n}").enqueue() for n in range(20)]
        until(lambda: len(programs.ran("began")) == 20, "all jobs to begin")
        programs.open_gate()
        ended = [handle.join(90) for handle in handles]
        for number in refused:
            failure = failure_of(handles[number])
            assert failure.reason == "poison_payload"
            assert "the database refused what this job would store" in failure.error
        again = app.bind(bodies.note, 21).using(business_key=f"key-{refused[0]}").enqueue()
        assert again.result(90) == 21
    assert [n for n, status in enumerate(ended) if status is not JobStatus.SUCCEEDED] == refused
    assert len(programs.ran()) == 21
    assert outcomes(store_url) == {"succeeded": 21 - len(refused), "failed": len(refused)}
    app.close()


def test_errors_that_no_database_would_take_are_stored_in_a_form_it_does(app: Windlass):
    """J5.3: file names that are no UTF-8, NUL bytes, no message at all, SystemExit: the failure is the job's own."""
    with app.worker():
        odd = failure_of(app.bind(bodies.raise_odd_text, 1).enqueue())
        exited = failure_of(app.bind(bodies.leave, 2).enqueue())
        wordless = failure_of(app.bind(bodies.wordless, 3).enqueue())
        assert app.bind(bodies.note, 4).enqueue().result(90) == 4
    assert (odd.error_class, odd.reason) != ("StoreDataError", "poison_payload")
    assert odd.error.startswith("FileNotFoundError: caf")
    assert exited.error == "SystemExit: job 2 leaves"
    assert wordless.error == "ValueError"


def test_a_listener_that_raises_changes_nothing(app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture):
    """J5.8: it is logged by name, the next subscriber gets the same event, the job has succeeded."""
    received: list[JobCompleted] = []

    def broken(event: JobCompleted) -> None:
        raise LookupError(f"no such thing: password=hunter2 {len(received)}")

    app.on(JobCompleted)(broken)
    app.on(JobCompleted)(received.append)
    with app.worker():
        handles = [app.bind(bodies.note, n).enqueue() for n in range(20)]
        assert [handle.result(90) for handle in handles] == list(range(20))
    assert sorted(event.job_id for event in received) == sorted(handle.id for handle in handles)
    assert caplog.text.count("broken failed on JobCompleted: LookupError: no such thing") == 20
    assert "hunter2" not in caplog.text
    assert statuses(store_url) == {"SUCCEEDED": 20}


def test_a_job_whose_module_fails_to_import_waits_for_another_node(store_url: str, programs: Programs):
    """J6.3: the import's error is in the log of the node that could not; the job waits, and spends nothing."""
    app = make_app(store_url, allow=[FRAGILE])
    app.migrate()
    broken = {**STEADY_LEASES, "TEST_ALLOW": FRAGILE, "TEST_FRAGILE": "broken"}
    here = programs.worker(store_url, 5, environ=broken)
    assert here.node
    handle = app.bind(fragile.import_customers, 7).enqueue()
    here.says(rf"{FRAGILE}.* RuntimeError: the licence server at licences\.example cannot be reached")
    assert app.bind(bodies.note, 8).enqueue().result(90) == 8
    assert handle.status() is JobStatus.PENDING
    there = programs.worker(store_url, 5, environ={**STEADY_LEASES, "TEST_ALLOW": FRAGILE})
    assert handle.result(90) == 7
    job = app.get(handle.id)
    assert (job.node, job.attempts, job.crash_count) == (there.node, 1, 0)
    app.close()
