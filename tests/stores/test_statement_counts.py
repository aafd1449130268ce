"""How many statements the hot path takes on a server, where each one is a round trip."""

import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import psycopg
import pytest

from tests.stores.recording import recorded, statements
from windlass import Event, JobCompleted, JobDeadLettered, Windlass
from windlass.domain.circuit import ServiceCall
from windlass.domain.clock import VirtualClock
from windlass.domain.ended import Ended
from windlass.domain.job import Payload
from windlass.domain.lanes import Lane
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, dead_letter, passed_over, released, retry_at, succeeded
from windlass.failure.dead_letters import DeadLetterFollowUp
from windlass.flow.callbacks import Callbacks
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.stores.plans import claims, cluster, jobs, limits, moves, queues, reads, statistics
from windlass.stores.plans.limits import Limit
from windlass.submission.codec import JsonSerializer
from windlass.submission.registry import Registry
from windlass.submission.stored_options import StoredCallback
from windlass.testing.contract.dead_letters import failed
from windlass.testing.contract.workbench import FAILURE, NODE, Workbench, new_job

MANY = 1000
FLUSH = 200
A_HANDFUL = 10


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


def steps_of(bench: Workbench, plan: Any, *args: Any) -> list[Step]:
    """Run a plan and give the steps it took; what needs no transaction must be alone."""
    steps: list[Step] = []
    bench.database.run(recorded(steps, plan), *args)
    assert len({step.autocommit for step in steps}) == 1, "a plan that needs no transaction says so in every step"
    return steps


def test_completing_200_plain_jobs_is_one_statement(bench: Workbench):
    """J4.1, J7.5: completions share one statement, counts included, which needs no transaction around it."""
    bench.put(FLUSH)
    transitions = [succeeded(claim, bench.times(), '"x"', holds_key=False) for claim in bench.claim()]
    (step,) = steps_of(bench, jobs.apply, transitions)
    assert (statements([step]), step.alone) == (1, True)
    assert {bench.job(transition.job_id).status for transition in transitions[::50]} == {JobStatus.SUCCEEDED}
    assert bench.database.read(statistics.last_hour)["default"].succeeded == FLUSH
    assert bench.database.run(statistics.roll_up, FLUSH) == 1, "one count for the whole flush"


def test_the_last_hour_of_all_queues_is_one_statement(bench: Workbench):
    """J7.5: and adding counts up two, of however many."""
    for number in range(A_HANDFUL):
        bench.succeed(bench.claimed_job(queue=f"q{number}"))
    steps = steps_of(bench, queues.depths)
    assert [step.name for step in steps].count("last_hour") == 1
    assert statements(steps_of(bench, statistics.roll_up, MANY)) == 2


def test_completing_200_jobs_of_every_kind_is_a_handful(bench: Workbench):
    """J4.1: more statements only for what is present, none per job."""
    for number in range(FLUSH):
        bench.submit([new_job(business_key=f"order:{number}")])
    claims, times = bench.claim(), bench.times()
    endings = [
        lambda claim: succeeded(claim, times, '"x"', holds_key=True),
        lambda claim: dead_letter(claim, times, FAILURE, "retry_exhausted", holds_key=True),
        lambda claim: retry_at(claim, times, FAILURE, 1),
        lambda claim: released(claim, times),
        lambda claim: passed_over(claim, times, "target:x"),
    ]
    transitions = [endings[number % len(endings)](claim) for number, claim in enumerate(claims)]
    assert len(transitions) == FLUSH
    assert statements(steps_of(bench, jobs.apply, transitions)) <= A_HANDFUL
    assert bench.holder("order:0") is None


def test_200_callbacks_follow_in_a_handful(bench: Workbench):
    """J4.1, J5.5: what follows a flush is one insert, in queues old and new."""
    callback = StoredCallback(target="shop:report", args=([None], {}), marks={"0": "outcome"}, queue="new")
    payload = Payload("[[],{}]", msgspec.json.encode({"on_success": callback}).decode(), None, None, None, None, 0)
    ended = [Ended(parent, "shop:charge", "default", 2, Move.SUCCEED, payload=payload) for parent in bench.put(FLUSH)]
    follow = Callbacks(Registry(), JsonSerializer(), ()).follow
    assert statements(steps_of(bench, follow, ended)) <= A_HANDFUL
    assert len(bench.claim()) == 2 * FLUSH


def test_storing_1000_dead_letters_takes_few_statements(bench: Workbench):
    """J5.4, J4.1: dead letters, groups and alerts of a batch are one statement each, of however many kinds."""
    bench.put(MANY)
    claims = bench.claim(MANY)
    bench.apply(*[dead_letter(claim, bench.times(), FAILURE, "retry_exhausted", holds_key=False) for claim in claims])
    errors = [Failure(f"{name}: no", name) for name in ("KeyError", "OSError", "ValueError")]
    ended = [failed(claim, errors[number % 3]) for number, claim in enumerate(claims)]
    follow = DeadLetterFollowUp("postgres", "here", 1).follow
    assert statements(steps_of(bench, follow, ended)) <= A_HANDFUL // 2
    ids = [claim.job_id for claim in claims]
    for plan in (moves.pause, moves.resume, moves.retry):
        assert statements(steps_of(bench, plan, ids)) <= A_HANDFUL


@pytest.mark.parametrize("keyed", [0, 10], ids=["plain", "a tenth with keys and tags"])
def test_enqueueing_1000_jobs_is_a_handful(bench: Workbench, keyed: int):
    """J1.2: a bulk enqueue is one insert, with keys or without."""
    unit = [
        new_job(idempotency_key=f"i{number}", business_key=f"b{number}", tags=("t",))
        if keyed and number % keyed == 0
        else new_job()
        for number in range(MANY)
    ]
    assert statements(steps_of(bench, jobs.submit, [unit], ["default"])) <= A_HANDFUL
    assert len(bench.claim(MANY)) == MANY


def test_enqueueing_one_job_on_a_known_queue_is_one_statement(bench: Workbench):
    """J1.2: the usual enqueue costs one round trip and one commit."""
    bench.put()
    (step,) = steps_of(bench, jobs.submit, [[new_job()]], [])
    assert (statements([step]), step.alone) == (1, True)


def test_a_claim_over_many_levels_is_one_statement(bench: Workbench):
    """J3.1: all queues and levels at once, small payloads included."""
    for level in range(10):
        bench.put(30, priority=level, queue=f"q{level % 3}")
    request = ClaimRequest(NODE, bench.heads().heads, FLUSH, 64, 0)
    (step,) = steps_of(bench, claims.claim, request)
    assert (statements([step]), step.alone) == (1, True)


def test_everything_between_claim_and_completion_is_counted_in_batches(bench: Workbench):
    """J4.1: no statement per job from claim to completion, large payloads included."""
    bench.put(FLUSH, args=f'[["{"x" * 2000}"],{{}}]')
    steps = steps_of(bench, queues.heads, lambda _: True, lambda _: True)
    steps += steps_of(bench, claims.claim, ClaimRequest(NODE, [Head("default", 2, 0)], FLUSH, 256, 0))
    running = [claim.job_id for claim in _running(bench)]
    steps += steps_of(bench, jobs.load, running)
    steps += steps_of(bench, reads.outcomes, running)
    assert len(running) == FLUSH
    assert statements(steps) == 4


GATED = Lane("stripe", None, "gateway").text


def test_jobs_behind_gates_take_few_more_statements_and_none_per_job(bench: Workbench):
    """J4.1, J3.4: permit, circuit and queue limit come with the claim; places go back with the outcomes."""
    bench.database.run(limits.configure_resource, "stripe", Limit(1000, 10_000, 1_000_000))
    bench.database.run(limits.limit_queue, "default", Limit(1000, None, None))
    bench.put(FLUSH, lane=GATED)
    looked = steps_of(bench, queues.heads, lambda _: True, lambda _: True)
    found = bench.heads()
    claimed = steps_of(bench, claims.claim, ClaimRequest(NODE, found.heads, FLUSH, 256, 0, found.limited))
    mine = bench.database.read(jobs.claims_of, NODE)
    assert len(mine) == FLUSH
    assert {claim.holds for claim in mine} == {'["queue:default","resource:stripe"]'}
    ended = steps_of(bench, jobs.apply, [succeeded(claim, bench.times(), None, holds_key=False) for claim in mine])
    learned = steps_of(bench, limits.record_calls, {"gateway": [ServiceCall()] * FLUSH})
    assert [step.name for step in claimed] == ["lock_gates", "take_freed", "claim_lane_level", "write_gates"]
    assert (statements(looked), statements(claimed), statements(ended)) == (3, 4, 1)
    assert statements(learned) <= A_HANDFUL
    assert [row.gate.in_use for row in bench.database.read(limits.gates, "resource:")] == [0]


def test_a_claim_of_plain_jobs_reads_no_gate(bench: Workbench):
    """J3.4: limits that concern none of the jobs cost nothing."""
    bench.database.run(limits.configure_resource, "stripe", Limit(5, None, None))
    bench.database.run(limits.limit_queue, "mail", Limit(5, None, None))
    bench.put(FLUSH)
    found = bench.heads()
    request = ClaimRequest(NODE, found.heads, FLUSH, 256, 0, found.limited)
    assert [step.name for step in steps_of(bench, claims.claim, request)] == ["claim_level"]


def test_a_heartbeat_is_one_statement(bench: Workbench):
    """J7.2: a beat is one small write without a transaction around it."""
    for plan, args in ((cluster.beat, (NODE, 1, 1)), (cluster.live_nodes, ()), (cluster.mark_lost, ())):
        (step,) = steps_of(bench, plan, *args)
        assert (statements([step]), step.alone) == (1, True)


def _running(bench: Workbench) -> list[Any]:
    bench.lose(NODE)
    while bench.recover().more:
        pass
    bench.register("again")
    return bench.claim(node="again")


def nothing() -> None:
    """The body of the jobs below."""


def fail() -> None:
    raise ValueError("on purpose")


@pytest.mark.parametrize(("body", "kind"), [(nothing, JobCompleted), (fail, JobDeadLettered)])
def test_a_worker_ends_1000_jobs_in_few_transactions(pg_url: str, body: Any, kind: type[Event]):
    """J4.1, J5.4: counted by the server itself while a real worker runs; dead letters share the commits of outcomes."""
    app = Windlass(pg_url)
    app.migrate()
    job = app.job(body)
    ended, all_ended = count(1), threading.Event()

    @app.on(kind)
    def count_end(_: Event) -> None:  # asking each handle would be a statement per job, and none of the worker's
        if next(ended) == MANY:
            all_ended.set()

    before = _transactions(pg_url)
    app.enqueue_many([job.bind() for _ in range(MANY)])
    with app.worker():
        assert all_ended.wait(90)
    counts = [group.count for group in app.dead_letters.groups()] + [alert.count for alert in app.alerts.find()]
    app.close()
    assert counts == ([MANY, MANY] if body is fail else [])
    assert _transactions(pg_url) - before < MANY / 4


def _transactions(url: str) -> int:
    """Commits so far; sessions that have ended have reported theirs."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        (count,) = connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone() or (0,)
    return int(count)


def test_recovering_200_jobs_of_a_lost_node_is_a_handful(bench: Workbench):
    """J7.2, J7.4: a node may leave hundreds behind, and each statement is a round trip for the recovering node."""
    ids = bench.put(FLUSH)
    bench.claim()
    bench.lose(NODE)
    assert statements(steps_of(bench, cluster.recover, 3)) <= A_HANDFUL
    assert {(job.status, job.crash_count, job.attempts) for job in map(bench.job, ids)} == {(JobStatus.PENDING, 1, 0)}
    assert [attempt.outcome for attempt in bench.history(ids[0])] == ["lost"]
