"""What signals cost: nothing for jobs that await none, and a fixed number of statements for those that do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.apps import Apps
from tests.engine.test_flow_flushes import flush
from tests.stores.recording import recorded
from windlass import Windlass
from windlass.domain.clock import VirtualClock
from windlass.engine.waiting_claims import WaitingClaims
from windlass.features import features_of, follow_ups_of
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.stores.plans import jobs, moves, signal_waits
from windlass.testing.contract.signals import KEY, SIGNAL, awaiting, deliver
from windlass.testing.contract.workbench import Workbench, new_job

FEW, MANY = 2, 50


@pytest.fixture
def app(apps: Apps) -> Windlass:
    return apps()


@pytest.fixture
def bench(apps: Apps, app: Windlass) -> Iterator[Workbench]:
    del app  # it has migrated
    clock = VirtualClock()
    database = open_database(apps.url, clock)
    yield Workbench(database, clock)
    database.close()


def steps_of(bench: Workbench, plan: Callable[..., Any], *args: Any, **kwargs: Any) -> list[str]:
    """Run a plan; return the names of its steps."""
    steps: list[Step] = []
    bench.database.run(recorded(steps, plan), *args, **kwargs)
    return [step.name for step in steps]


def test_waiting_jobs_are_stored_with_two_statements_more(bench: Workbench):
    """J8.5, J8.7: however many they are; plain jobs take what they took before."""
    plain = steps_of(bench, jobs.submit, [[new_job(tags=["t"]) for _ in range(FEW)]], [])
    assert not [name for name in plain if "wait" in name or "park" in name]
    for count in (FEW, MANY):
        waiting = [new_job(tags=["t"], **awaiting()) for _ in range(count)]
        assert [name for name in steps_of(bench, jobs.submit, [waiting], []) if name not in plain] == [
            "insert_waits",
            "park_jobs",
        ]


def test_signal_takes_the_same_statements_for_one_job_and_for_many(bench: Workbench):
    """J8.5: lock, deliver, release."""
    found = []
    for count in (1, MANY):
        bench.put(count, **awaiting())
        found.append(steps_of(bench, signal_waits.deliver, SIGNAL, None, key=KEY))
    assert found[0] == found[1]
    assert [name for name in found[0] if name != "notify"] == ["waiters_of_key", "deliver_signal", "release_waiters"]
    assert steps_of(bench, signal_waits.deliver, SIGNAL, None, key=KEY) == ["waiters_of_key"]


def test_flush_of_signaled_jobs_takes_the_statements_of_plain_ones(app: Windlass, bench: Workbench):
    """J8.7: their waits were closed by the signal."""
    follow_ups = follow_ups_of(features_of(app.parts))
    bench.put(FEW)
    plain, _ = flush(bench, follow_ups)
    bench.put(FEW, **awaiting())
    deliver(bench)
    assert flush(bench, follow_ups)[0] == plain


def test_claims_of_plain_jobs_need_no_signal(app: Windlass, bench: Workbench):
    """J8.7, J4.1: their payloads are complete as they come with the claim; those of waiting jobs are not."""
    sources = [feature.arguments for feature in features_of(app.parts) if feature.arguments is not None]
    waiting = WaitingClaims(bench.database, sources)
    bench.put(FEW, options='{"max_retries":3}')
    payloads = bench.claim_all().payloads
    assert waiting.complete(payloads) == payloads
    bench.put(FEW, **awaiting())
    deliver(bench)
    assert waiting.complete(bench.claim_all().payloads) == {}


def test_cancel_closes_waits_only_of_waiting_jobs(app: Windlass, bench: Workbench):
    """J8.7, J2.2: a plain cancel takes what it took before."""
    follow_ups = follow_ups_of(features_of(app.parts))
    plain, waits = bench.put(1), bench.put(1, **awaiting())
    assert "close_waits" not in steps_of(bench, moves.cancel, plain, follow_ups)
    assert "close_waits" in steps_of(bench, moves.cancel, waits, follow_ups)
