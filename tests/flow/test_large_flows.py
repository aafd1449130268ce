"""Flows of more rows than one transaction writes: the rest is an operation, carried out before the verb returns."""

from collections import Counter

import pytest

from tests.engine.apps import Apps, count, query, until
from tests.flow.flow_bodies import BROKEN, Jobs
from windlass import Windlass, group
from windlass.domain.identity import FIRST_ID
from windlass.stores.plans import flow_checks, flow_revival, flows
from windlass.testing import drain

MOST = 20


@pytest.fixture(autouse=True)
def _small_transactions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flows, "MOST_ROWS", MOST)
    monkeypatch.setattr(flow_revival, "MOST_ROWS", MOST)


def done(url: str) -> Counter[str]:
    return Counter(status for (status,) in query(url, "SELECT status FROM windlass_done"))


def long_chain(jobs: Jobs, steps: int):
    flow = jobs.step.bind("head").then(jobs.step.bind("1"))
    for number in range(2, steps):
        flow = flow.then(jobs.step.bind(str(number)))
    return flow


def test_a_long_chain_is_canceled_before_the_verb_returns(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.6: in bounded transactions."""
    handle = long_chain(jobs, 5 * MOST).enqueue()
    assert handle.cancel()
    assert done(apps.url) == {"CANCELED": 5 * MOST}
    assert (count(apps.url, "operation"), count(apps.url, "hot")) == (0, 0)


def test_a_wide_fan_out_is_canceled_with_its_join(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.6: members of a group are counted as they are canceled."""
    members = [jobs.double.bind(n) for n in range(4 * MOST)]
    handle = jobs.step.bind("head").then(group(*members)).then(jobs.join).then(jobs.join).enqueue()
    assert handle.cancel()
    assert done(apps.url) == {"CANCELED": 4 * MOST + 3}
    assert query(apps.url, "SELECT total, failed FROM windlass_group") == [(4 * MOST, 4 * MOST)]


@pytest.mark.parametrize("verb", ["replace", "enqueue"])
def test_a_superseded_flow_is_canceled_before_the_verb_returns(app: Windlass, apps: Apps, jobs: Jobs, verb: str):
    """J8.6, J2.4: a job that takes another one's place, or its business key."""
    head = jobs.step.using(business_key="k", delay=60).bind("head")
    handle = head.then(group(*(jobs.double.bind(n) for n in range(4 * MOST)))).then(jobs.join).enqueue()
    if verb == "replace":
        app.replace(handle.id, jobs.step.bind("new"))
    else:
        jobs.step.using(business_key="k", on_conflict="replace").bind("new").enqueue()
    assert done(apps.url) == {"CANCELED": 4 * MOST + 2}
    assert (count(apps.url, "operation"), count(apps.url, "hot")) == (0, 1)


def test_a_worker_finishes_the_cascade_that_its_flush_began(apps: Apps):
    """J8.6: the completer cancels the first part, a service the rest."""
    app = apps()
    jobs = Jobs(app)
    BROKEN.add("head")
    with app.worker():
        long_chain(jobs, 5 * MOST).enqueue()
        until(lambda: done(apps.url) == {"FAILED": 1, "CANCELED": 5 * MOST - 1})
        until(lambda: count(apps.url, "operation") == 0)


def test_a_worker_releases_a_wide_fan_out(apps: Apps):
    """J8.6: more followers than one transaction releases."""
    app = apps()
    jobs = Jobs(app)
    with app.worker():
        members = [jobs.double.bind(n) for n in range(4 * MOST)]
        handle = jobs.step.bind("head").then(group(*members)).then(jobs.join).enqueue()
        handle.join(timeout=90)
        until(lambda: done(apps.url) == {"SUCCEEDED": 4 * MOST + 2})
    assert count(apps.url, "operation") == 0


@pytest.mark.parametrize("wide", [False, True])
def test_retry_revives_a_large_flow(app: Windlass, apps: Apps, jobs: Jobs, wide: bool):
    """J2.4, J8.6: in waves, the failed job last."""
    BROKEN.add("head")
    if wide:
        members = [jobs.double.bind(n) for n in range(4 * MOST)]
        flow = jobs.step.bind("head").then(group(*members)).then(jobs.join).then(jobs.join)
    else:
        flow = long_chain(jobs, 4 * MOST)
    handle = flow.enqueue()
    with app.worker():
        until(lambda: count(apps.url, "hot") == 0)
    stored = count(apps.url, "job")
    assert done(apps.url) == {"FAILED": 1, "CANCELED": stored - 1}
    BROKEN.clear()
    assert handle.retry()
    assert count(apps.url, "hot") == stored
    if wide:
        assert query(apps.url, "SELECT succeeded, failed FROM windlass_group") == [(0, 0)]
    assert drain(app).succeeded == stored


def test_replacing_the_head_cancels_a_long_chain_before_it_returns(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.6: like any other verb, also in a process without a worker."""
    handle = long_chain(jobs, 5 * MOST).enqueue()
    app.replace(handle.id, jobs.step.bind("new"))
    assert done(apps.url) == {"CANCELED": 5 * MOST}
    assert (count(apps.url, "operation"), count(apps.url, "hot")) == (0, 1)


def failed_fan_out(app: Windlass, jobs: Jobs):
    BROKEN.add("head")
    members = [jobs.step.bind(str(number)) for number in range(3 * MOST)]
    handle = jobs.step.bind("head").then(group(*members)).then(jobs.step.bind("join")).enqueue()
    drain(app)
    BROKEN.clear()
    return handle


def check(app: Windlass):
    return app.database.run(flow_checks.release_missed, FIRST_ID)


def test_the_checks_do_not_interfere_with_a_large_retry(app: Windlass, apps: Apps, jobs: Jobs):
    """J2.4, J8.6: between two of its transactions its followers wait for a parent that has failed."""
    handle = failed_fan_out(app, jobs)
    assert app.database.run(flow_revival.revive_some, [str(handle.id)]) == MOST
    assert check(app).found == 0
    assert handle.retry()
    assert (count(apps.url, "operation"), count(apps.url, "hot")) == (0, 3 * MOST + 2)
    drain(app)
    assert handle.graph().succeeded


def test_the_checks_undo_a_large_retry_that_was_given_up(app: Windlass, apps: Apps, jobs: Jobs, clock):
    """flows §8: its process died; calling it again goes on."""
    handle = failed_fan_out(app, jobs)
    app.database.run(flow_revival.revive_some, [str(handle.id)])
    clock.advance(11)
    left = app.database.run(flow_checks.find_unfinished)
    app.database.run(flows.carry_on, left)
    assert check(app).found > 0
    drain(app)
    assert (count(apps.url, "operation"), count(apps.url, "hot")) == (0, 0)
    assert handle.retry()
    drain(app)
    assert handle.graph().succeeded


def test_a_retry_while_the_checks_decide_loses_nothing(app: Windlass, apps: Apps, jobs: Jobs, clock):
    """J2.4: the parent that they found failed is started over before they have canceled its followers."""
    if apps.url.startswith("sqlite"):
        pytest.skip("there is one writer")
    handle = failed_fan_out(app, jobs)
    app.database.run(flow_revival.revive_some, [str(handle.id)])
    clock.advance(11)

    def interrupted(dialect, after: str):
        plan = flow_checks.release_missed(dialect, after)
        step = next(plan)
        try:
            while True:
                answer = yield step
                if step.name == "unreleased_of_jobs":
                    assert answer
                    assert handle.retry()
                step = plan.send(answer)
        except StopIteration as stop:
            return stop.value

    app.database.run(interrupted, FIRST_ID)
    drain(app)
    assert handle.graph().succeeded
