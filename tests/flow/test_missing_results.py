"""Results that are gone or cannot be read: the follower fails alone, and holds up no other job."""

from typing import Any

import pytest

from tests.engine.apps import Apps
from tests.flow.flow_bodies import Jobs
from windlass import RESULT, JobStatus, Windlass, group
from windlass.stores.plan import Step
from windlass.submission.codec import JsonSerializer
from windlass.testing import drain


def forget(dialect, job_id: str):
    yield Step("forget_ended", {"ids": dialect.ids([job_id])})


def check_alone(app: Windlass, jobs: Jobs, follower: Any, why: str) -> None:
    other = jobs.double.bind(4).enqueue()
    drain(app)
    assert other.result() == 8
    job = app.get(follower)
    assert (job.status, job.reason) == (JobStatus.FAILED, "poison_payload")
    assert job.error is not None
    assert why in job.error


def test_a_missing_outcome_of_a_parent_fails_only_its_follower(app: Windlass, jobs: Jobs, clock):
    """J7.9: a damaged row."""
    handle = jobs.double.bind(1).then(jobs.double.using(delay=60).bind(RESULT)).enqueue()
    last = handle.graph().nodes[-1].id
    drain(app)
    app.database.run(forget, str(handle.id))
    clock.advance(60)
    check_alone(app, jobs, last, f"the result of job {handle.id} cannot be passed on")


@pytest.mark.parametrize("nested", [False, True])
def test_a_missing_outcome_of_a_member_fails_only_the_join(app: Windlass, jobs: Jobs, clock, *, nested: bool):
    """J7.9, J8.3: a list that lacks a member is not the result of the group."""
    second = group(jobs.double.bind(2), jobs.double.bind(3)) if nested else jobs.double.bind(2)
    handle = group(jobs.double.bind(1), second).then(jobs.join.using(delay=60).bind(RESULT)).enqueue()
    drain(app)
    app.database.run(forget, str(handle.graph().nodes[1].id))
    clock.advance(60)
    check_alone(app, jobs, handle.id, "1 of its results are missing")


class UnreadableResults:
    """A serializer whose results cannot be read, with an error of its own."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __getattr__(self, name: str) -> Any:
        return getattr(self._default, name)

    def decode_result(self, text: str | None, annotation: Any) -> Any:
        del annotation
        if text == "2":
            raise KeyError("not mine")
        return self._default.decode_result(text, Any)


def test_an_error_of_a_serializer_fails_only_the_follower(apps: Apps, clock):
    """J7.9: whatever users' code raises."""
    app = apps(clock=clock, serializer=UnreadableResults(JsonSerializer()))
    jobs = Jobs(app)
    handle = jobs.double.bind(1).then(jobs.double).enqueue()
    check_alone(app, jobs, handle.graph().nodes[-1].id, "KeyError: 'not mine'")
