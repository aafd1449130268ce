"""Random operations on a store and on a model of it: after each one, both must show the same."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.stores.model import Model
from windlass.domain.clock import VirtualClock
from windlass.domain.job import Claim
from windlass.domain.transition import Times, Transition, dead_letter, released, retry_at, snoozed, succeeded
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import cluster
from windlass.testing.contract.workbench import FAILURE, SECOND, Workbench, new_job

BUDGET = 1
TABLES = ("job", "hot", "done", "attempt", "key", "live_key", "job_tag", "queue", "lane", "node")
RUNS = settings(stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
EXAMPLES = {"sqlite_world": 70, "postgres_world": 40}
"""As many as fit into some ten seconds; the machine is the same for both."""

JOBS = """
SELECT j.id, coalesce(h.status, d.status), coalesce(h.fence, d.fence), coalesce(h.attempts, d.attempts),
    coalesce(h.crash_count, d.crash_count), coalesce(h.node, d.node), h.due, d.superseded_by,
    h.id IS NOT NULL, d.id IS NOT NULL
FROM windlass_job j LEFT JOIN windlass_hot h ON h.id = j.id LEFT JOIN windlass_done d ON d.id = j.id
"""
HISTORY = "SELECT job_id, fence, outcome, number FROM windlass_attempt"
KEYS = """
SELECT 'idempotency', idempotency_key, job_id FROM windlass_key
UNION ALL SELECT 'business', business_key, holder_id FROM windlass_live_key
"""

Look = Callable[[str], list[Any]]


class World(NamedTuple):
    """A store, its clock, and an onlooker with a connection of its own."""

    database: Database
    clock: VirtualClock
    look: Look


def ending(outcome: str, claim: Claim, times: Times, delay_us: int) -> Transition:
    match outcome:
        case "succeeded":
            return succeeded(claim, times, None, holds_key=True)
        case "failed":
            return dead_letter(claim, times, FAILURE, "retry_exhausted", holds_key=True)
        case "retried":
            return retry_at(claim, times, FAILURE, delay_us)
        case "snoozed":
            return snoozed(claim, times, delay_us)
        case _:
            return released(claim, times, outcome=outcome)


specs = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(["a", "b"]),
        "priority": st.integers(0, 9),
        "delay_us": st.sampled_from([0, 0, 0, SECOND, 90 * SECOND]),
        "idempotency_key": st.sampled_from([None, None, "i1", "i2", "i3"]),
        "business_key": st.sampled_from([None, "b1", "b2"]),
        "on_conflict": st.sampled_from(["raise", "return_existing", "replace"]),
    }
)
outcomes = st.sampled_from(["succeeded", "retried", "released", "snoozed", "failed"])


class Machine(RuleBasedStateMachine):
    """Clients submit, two nodes work and die, time passes."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.clock = world.clock
        world.database.run(_delete_all)
        self.bench = Workbench(world.database, world.clock)
        self.model = Model(world.clock.micros)
        self.claims: list[Claim] = []
        self.nodes: list[str] = []
        self.dead: set[str] = set()
        self.named = 0
        self._hire()
        self._hire()

    def _hire(self) -> None:
        self.named += 1
        self.nodes.append(f"n{self.named}")
        self.bench.register(self.nodes[-1])

    @rule(unit=st.lists(specs, min_size=1, max_size=3))
    def submit(self, unit: list[dict[str, Any]]) -> None:
        rows = [new_job(**spec) for spec in unit]
        assert self.bench.submit(rows) == [self.model.submit(rows)]

    @rule(
        node=st.integers(0, 1),
        wanted=st.integers(1, 6),
        chunk=st.integers(1, 4),
        boost=st.sampled_from([0, SECOND, 900 * SECOND]),
    )
    def claim(self, node: int, wanted: int, chunk: int, boost: int) -> None:
        ready = self.model.in_order(boost)
        claims = self.bench.claim_all(wanted, node=self.nodes[node], chunk=chunk, boost=boost).claims
        assert len(claims) <= wanted
        assert bool(claims) == bool(ready)
        taken = self.model.claim(ready[: len(claims)], self.nodes[node])
        assert [(claim.job_id, claim.fence) for claim in claims] == taken
        for claim in claims:
            job = self.model.jobs[claim.job_id]
            assert (claim.attempts, claim.crash_count, claim.due_at) == (job.attempts, job.crashes, job.due)
        self.claims += claims

    @precondition(lambda self: self.claims)
    @rule(
        picks=st.lists(st.tuples(st.integers(0, 20), outcomes), min_size=1, max_size=4, unique_by=lambda pick: pick[0]),
        delay_us=st.sampled_from([0, SECOND, 30 * SECOND]),
        retried=st.booleans(),
    )
    def complete(self, picks: list[tuple[int, str]], delay_us: int, retried: bool) -> None:
        """Any claim ever made may try, the latest ones most often; most late ones are refused."""
        chosen = {self.claims[-1 - pick % len(self.claims)]: outcome for pick, outcome in picks}
        transitions = [ending(outcome, claim, self.bench.times(), delay_us) for claim, outcome in chosen.items()]
        expected = [self.model.apply(c, outcome, delay_us, retried=retried) for c, outcome in chosen.items()]
        assert self.bench.apply(*transitions, retried=retried) == expected

    @rule(seconds=st.sampled_from([0.5, 1, 14, 60]))
    def time_passes(self, seconds: float) -> None:
        """Live nodes send heartbeats in time; dead nodes do not, and are not marked lost yet."""
        self.clock.advance(seconds)
        for node in set(self.nodes) - self.dead:
            assert self.bench.beat(node)
        assert self.world.database.run(cluster.live_nodes) >= len(set(self.nodes) - self.dead)

    @rule(node=st.integers(0, 1))
    def node_dies(self, node: int) -> None:
        self.dead.add(self.nodes[node])

    @precondition(lambda self: self.dead)
    @rule()
    def lost_nodes_are_found(self) -> None:
        self.bench.lose(*self.dead, alive=sorted(set(self.nodes) - self.dead))
        given_up: set[str] = set()
        while (found := self.bench.recover(BUDGET)).more:
            given_up |= {job for job, _ in found.given_up}
        assert given_up == self.model.lose(self.dead, BUDGET)
        for node in sorted(self.dead):
            assert not self.bench.beat(node)
            self.nodes.remove(node)
            self._hire()
        self.dead = set()

    @invariant()
    def store_and_model_show_the_same(self) -> None:
        rows = {_id(row[0]): row for row in self.world.look(JOBS)}
        assert {job: _seen(row) for job, row in rows.items()} == {job: m.seen() for job, m in self.model.jobs.items()}
        assert all(row[8] != row[9] for row in rows.values()), "a job is live or done, never both"
        keys = {("idempotency", key): job for key, job in self.model.keys.items()}
        keys |= {("business", key): job for key, job in self.model.holders.items()}
        assert {(kind, key): _id(job) for kind, key, job in self.world.look(KEYS)} == keys

    @invariant()
    def every_claim_leaves_its_row_in_the_history(self) -> None:
        found = {(_id(job), fence): outcome for job, fence, outcome, _ in self.world.look(HISTORY)}
        jobs = self.model.jobs.items()
        assert found == {(job, fence): outcome for job, m in jobs for fence, outcome in m.history.items()}


def _seen(row: Any) -> tuple[object, ...]:
    _, status, fence, attempts, crashes, node, due, superseded_by, *_ = row
    return (status, fence, attempts, crashes, node, due, superseded_by and _id(superseded_by))


def _id(value: Any) -> str:
    return str(value)


def _delete_all(_: Dialect) -> Plan[None]:
    yield Step(SCRIPT, {"text": "\n".join(f"DELETE FROM windlass_{table};" for table in TABLES)})


@pytest.fixture
def sqlite_world(file_url: str, clock: VirtualClock) -> Iterator[World]:
    database = open_database(f"{file_url}?synchronous=normal", clock)
    onlooker = sqlite3.connect(file_url.removeprefix("sqlite:///"), isolation_level=None)
    yield World(database, clock, lambda query: onlooker.execute(query).fetchall())
    onlooker.close()
    database.close()


@pytest.fixture
def postgres_world(clean_pg_url: str, clock: VirtualClock) -> Iterator[World]:
    database = open_database(clean_pg_url, clock)
    with psycopg.connect(clean_pg_url, autocommit=True) as onlooker:
        yield World(database, clock, lambda query: onlooker.execute(query).fetchall())
    database.close()


@pytest.mark.timeout(900)  # a failure is worth the time it takes to find its shortest story
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_store_does_what_its_model_does(kind: str, request: pytest.FixtureRequest):
    """J1.4, J1.5, J2.1, J2.5, J3.1, J7.2, J7.3, J7.4: in any order, by any hands."""
    world: World = request.getfixturevalue(kind)

    class Here(Machine):
        def __init__(self) -> None:
            super().__init__(world)

    run_state_machine_as_test(Here, settings=settings(RUNS, max_examples=EXAMPLES[kind]))
