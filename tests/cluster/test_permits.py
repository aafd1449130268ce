"""Permits, keys, rates and limits with several real processes at full speed, judged by what bodies wrote down."""

from collections import defaultdict
from datetime import timedelta

import pytest

from tests.crash.programs import bodies, permits
from tests.crash.programs.application import make_app
from tests.support.facts import one
from tests.support.programs import SHORT_LEASES, STEADY_LEASES, Programs
from tests.support.waiting import until
from windlass import JobStatus, Windlass

NEVER_POLLS = {f"WINDLASS_POLLER__{delay}": "600" for delay in ("BURST_DELAY", "MIN_DELAY", "MAX_DELAY")}
"""With these, only a wakeup makes a worker look for work."""
FUNCTIONS = (permits.use, permits.use_in_thread, bodies.hold, bodies.note)
KNOWN = ",".join(f"{function.__module__}:{function.__name__}" for function in FUNCTIONS)


def most_at_a_time(programs: Programs) -> dict[str, int]:
    """How many bodies were inside at once, by what they used: every moment a body had begun and not ended."""
    moments: list[tuple[int, int, str]] = []
    for word, change in (("begins", 1), ("ends", -1)):
        for entry in programs.ran(word):
            what, _, nanoseconds = entry.partition("@")
            moments.append((int(nanoseconds), change, what))
    inside: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    for _, change, what in sorted(moments):
        inside[what] += change
        most[what] = max(most[what], inside[what])
    assert set(inside.values()) == {0}, "every body that began has ended"
    return dict(most)


def in_use(app: Windlass) -> int:
    return sum(resource.in_use for resource in app.resources())


@pytest.mark.serial
def test_eight_claimers_in_four_processes_exceed_no_permit_no_key_and_no_limit(store_url: str, programs: Programs):
    """J6.2, J1.7: counted by an observer that knows nothing of gates; every job runs once."""
    app = make_app(store_url, FUNCTIONS)
    app.migrate()
    app.configure_resource("stripe", 3)
    app.configure_resource("tenant", 2)
    app.limit_queue("mail", concurrency=4, create=True)
    use, thread = app.bind(permits.use, "stripe", 0.004), app.bind(permits.use_in_thread, "stripe", 0.004)
    calls = [call.using(resource="stripe") for call in [use, thread] * 60]
    for key in ("acme", "b/c d"):
        calls += [app.bind(permits.use, f"tenant-{key[0]}", 0.004).using(resource="tenant", resource_key=key)] * 60
    calls += [app.bind(permits.use, "mail", 0.004).using(queue="mail")] * 60
    workers = [programs.worker(store_url, 2, KNOWN, environ=STEADY_LEASES) for _ in range(4)]
    assert all(worker.node for worker in workers)
    handles = app.enqueue_many(calls)
    assert {handle.join(120) for handle in handles} == {JobStatus.SUCCEEDED}
    most = most_at_a_time(programs)
    bounds = {"stripe": 3, "tenant-a": 2, "tenant-b": 2, "mail": 4}
    assert {what: count for what, count in most.items() if count > bounds[what]} == {}
    assert most["stripe"] > 1, "they did run at the same time"
    assert len(programs.ran("begins")) == len(calls)
    until(lambda: in_use(app) == 0, "all permits to be back")
    assert one(store_url, "SELECT count(DISTINCT node) FROM windlass_done") > 1, "several processes took part"
    app.close()
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0


@pytest.mark.serial
def test_no_second_has_more_than_the_rate_with_several_processes(store_url: str, programs: Programs):
    """J6.2: by the store's clock, in which claims are made."""
    app = make_app(store_url, FUNCTIONS)
    app.migrate()
    app.configure_resource("api", 50, rate=20)
    handles = app.enqueue_many([app.bind(permits.use, "api", 0.001).using(resource="api")] * 70)
    workers = [programs.worker(store_url, 4, KNOWN, environ=STEADY_LEASES) for _ in range(2)]
    assert {handle.join(90) for handle in handles} == {JobStatus.SUCCEEDED}
    picked = [app.history(handle.id)[-1].picked_at for handle in handles]  # a claim before it may have been released
    assert len(picked) == 70
    for start in picked:
        assert start is not None
        assert sum(1 for other in picked if other and timedelta(0) <= other - start < timedelta(seconds=1)) <= 20
    app.close()
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0


def test_the_permits_of_a_killed_process_are_released_with_its_jobs(store_url: str, programs: Programs):
    """J6.2, J7.2: freed when its node is lost; the waiter, and then the job itself, run elsewhere."""
    app = make_app(store_url, FUNCTIONS)
    app.migrate()
    app.configure_resource("stripe", 1, retry_delay=600)
    doomed = programs.worker(store_url, 2, KNOWN)
    assert doomed.node
    holding = app.bind(bodies.hold, 1).using(resource="stripe").enqueue()
    until(lambda: programs.ran("began"), "the body to begin")
    waits = app.bind(bodies.note, 2).using(resource="stripe").enqueue()
    other = programs.worker(store_url, 2, KNOWN)
    assert other.node
    assert in_use(app) == 1
    doomed.kill()
    programs.open_gate()
    assert {handle.join(90) for handle in (holding, waits)} == {JobStatus.SUCCEEDED}
    assert sorted(programs.ran()) == ["1", "2"]
    until(lambda: in_use(app) == 0, "the permit to be back")
    app.close()
    other.terminate()
    assert other.exit_code() == 0


def test_the_permit_of_a_canceled_body_on_a_killed_process_is_released(store_url: str, programs: Programs):
    """J6.2: its job has ended long before; only recovery knows of its permit."""
    app = make_app(store_url, (*FUNCTIONS, bodies.never_end_in_thread))
    app.migrate()
    app.configure_resource("stripe", 1, retry_delay=600)
    doomed = programs.worker(store_url, 2, f"{bodies.__name__}:never_end_in_thread")
    assert doomed.node
    running = app.bind(bodies.never_end_in_thread, 1).using(resource="stripe").enqueue()
    until(lambda: programs.ran("began"), "the body to begin")
    assert running.cancel()
    waits = app.bind(bodies.note, 2).using(resource="stripe").enqueue()
    other = programs.worker(store_url, 2, KNOWN, environ={**SHORT_LEASES, **NEVER_POLLS})
    assert other.node
    until(lambda: app.explain(waits.id).code == "permit_full", "the permit to be kept by the body")
    doomed.kill()
    assert waits.join(90) is JobStatus.SUCCEEDED
    app.close()
    other.terminate()
    assert other.exit_code() == 0
