"""Features register themselves: whatever ends or revives a job writes their follow-ups, and publishes their effects."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from tests.engine import jobs
from tests.engine.apps import Apps
from tests.support.waiting import until
from windlass import JobStatus, Windlass, group
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.rhythm import Every
from windlass.domain.states import Move
from windlass.feature import Feature, NodeTools
from windlass.features import features_of
from windlass.runtime.duty import Duty
from windlass.runtime.service import Service
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import flows, leases
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
    own = ["callbacks", "dead letters", "retry times", "circuits", "archive", "statistics", "signals", "flows"]
    assert names == [
        *own,
        "guards",
        "guards of batches",
        "results of flows",
        "schedules",
        "pipelines",
        "relay",
        "recorder",
    ]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        (lambda app, job: app.cancel(job.id), (P, C, "canceled")),
        (lambda app, job: app.cancel_by_tag("t"), (P, C, "canceled")),
        (lambda app, job: app.replace(job.id, app.bind(jobs.note, "new")), (P, C, "superseded")),
    ],
    ids=["cancel", "cancel_by_tag", "replace"],
)
def test_verbs_that_end_jobs_write_follow_ups(
    app: Windlass, recorder: Recorder, verb: Callable[[Windlass, Any], object], expected: tuple[Any, ...]
):
    """J2.2: in the transaction of the verb."""
    job = app.job(tags=["t"])(jobs.note).enqueue("old")
    verb(app, job)
    assert recorder.seen[str(job.id)] == expected


def test_a_superseded_job_has_its_follow_ups(app: Windlass, recorder: Recorder):
    """J1.5: it is canceled by the enqueue of the job that takes its key."""
    note = app.job(business_key="k", on_conflict="replace")(jobs.note)
    old = note.enqueue("old")
    note.enqueue("new")
    assert recorder.seen == {str(old.id): (P, C, "superseded")}


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
    """J2.4: a follow-up is called for a dead letter that is revived."""
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


@pytest.mark.parametrize("count", [2, flows.MOST_ROWS + 5])
def test_followers_that_a_failure_cancels_have_their_follow_ups(app: Windlass, recorder: Recorder, count: int):
    """J8.6: in the transaction of the outcome, and in those that carry the cascade on."""
    note = app.job(jobs.note)
    members = [note.bind(f"member {number}") for number in range(count)]
    app.job(jobs.fail).bind("head").then(group(*members)).then(note.bind("join")).enqueue()
    assert drain(app).failed == 1
    canceled = [seen for seen in recorder.seen.values() if seen[1] is C]
    assert canceled == [(P, C, "upstream_failed")] * (count + 1)


T = TypeVar("T", bound=Service)


class Ticking(Service):
    """Ticks once."""

    async def tick(self) -> float | None:
        return None


class Passing(Duty):
    """Has nothing to do when it is its turn."""

    async def batch(self) -> bool:
        return False


def test_a_node_runs_the_services_and_duties_of_its_features(apps: Apps):
    """J7.5: they are started with the node and stopped before it leaves; a duty waits for its lease."""
    made: list[Service] = []

    def armed(service: T) -> T:
        service.signals.ticked.arm()
        made.append(service)
        return service

    def services(tools: NodeTools) -> list[Service]:
        return [armed(Ticking("ticking", tools.errors))]

    def duties(tools: NodeTools) -> list[Duty]:
        return [armed(Passing("passing", tools.lease("passing", Every(0)), tools.errors))]

    app = apps()
    app.job(jobs.note)
    app.exchange(app.parts._replace(features=(Feature("both", duties=duties, services=services),)))
    with app.worker():
        for service in made:
            service.signals.ticked.wait_sync()
    assert [service.alive for service in made] == [False, False]
    assert app.database.read(leases.last_pass, "passing") is not None
