"""Features register themselves: whatever ends or revives a job writes their follow-ups, and publishes their effects."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import Apps
from tests.support.waiting import until
from windlass import JobStatus, Windlass
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.states import Move
from windlass.feature import Feature
from windlass.features import features_of
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.testing import drain


class Recorder:
    """A feature that notes every job it was given, with the state it left and the one it is in."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[JobStatus, JobStatus, str | None]] = {}
        self.feature = Feature("recorder", (FollowUp(frozenset(Move), lambda _: True, self._follow),))

    def _follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        del dialect
        self.seen |= {job.job_id: (job.left, job.status, job.reason) for job in ended}
        yield from ()
        return NO_EFFECTS


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def app(apps: Apps, recorder: Recorder) -> Windlass:
    app = apps()
    app.exchange(app.parts._replace(features=(recorder.feature,)))
    return app


P, R, S, F, C = (JobStatus[name] for name in ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"))


def test_every_application_has_its_features(app: Windlass, recorder: Recorder):
    names = [feature.name for feature in features_of(app.parts)]
    assert names == ["callbacks", "dead letters", "retry times", "circuits", "recorder"]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        (lambda app, job: app.cancel(job.id), (P, C, "canceled")),
        (lambda app, job: app.cancel_by_tag("t"), (P, C, "canceled")),
    ],
    ids=["cancel", "cancel_by_tag"],
)
def test_verbs_that_end_jobs_write_follow_ups(
    app: Windlass, recorder: Recorder, verb: Callable[[Windlass, Any], object], expected: tuple[Any, ...]
):
    """J2.2: in the transaction of the verb."""
    job = app.job(tags=["t"])(jobs.note).enqueue("old")
    verb(app, job)
    assert recorder.seen[str(job.id)] == expected


@pytest.mark.parametrize(
    "verb",
    [
        lambda app, job: app.retry(job.id),
        lambda app, job: app.retry_many(),
        lambda app, job: app.dead_letters.redrive(),
    ],
    ids=["retry", "retry_many", "redrive"],
)
def test_verbs_that_revive_jobs_write_follow_ups(
    app: Windlass, recorder: Recorder, verb: Callable[[Windlass, Any], object]
):
    """J2.4: a feature hears of a dead letter that lives again."""
    job = app.job(jobs.fail).enqueue("on purpose")
    assert drain(app).failed == 1
    assert recorder.seen[str(job.id)][:2] == (R, F)
    verb(app, job)
    assert recorder.seen[str(job.id)] == (F, P, None)


def test_outcomes_write_follow_ups(app: Windlass, recorder: Recorder):
    """J4.3: also those of plain jobs that did not succeed; a plain success is followed by nothing."""
    plain = app.job(jobs.note).enqueue("x")
    with_options = app.job(jobs.add).using(max_retries=1).enqueue(1, 2)
    with app.worker():
        until(lambda: {app.get(job.id).status for job in (plain, with_options)} == {S}, "both have succeeded")
    assert recorder.seen == {str(with_options.id): (R, S, None)}
