"""Two nodes and one job on a real store: claim, run, finish, stall, die, recover, in every order.

The store's part is not a model at all: each move runs the product's own plans on SQLite in memory. Modelled is what
the nodes do in between: what they hold, how far their bodies are, whether they stand still. A move is one transaction
or one step of a node; time moves only when a move says so.
"""

import sqlite3
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tests.chaos import broken
from tests.chaos.facts import Facts, read_tables
from tests.chaos.model.explorer import Move
from tests.chaos.oracle import AT_ANY_MOMENT, AT_THE_END, Check, judge
from tests.chaos.witness import Accepted, Account, Canceled, Fault, Lease, Run, Taken
from windlass.domain.job import Claim, NewJob
from windlass.domain.transition import Failure, Times, Transition, retry_at, succeeded
from windlass.stores import migrate
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.plan import Plan, Step, drive
from windlass.stores.plans import claims, cluster, jobs, moves
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.session import Session

T = TypeVar("T")

SECOND = 1_000_000
STEP = 1_000
"""Microseconds that a move takes: enough to distinguish before from after, never enough to end a lease."""
LEASE = 100 * SECOND
JOB = "00000000-0000-7000-8000-000000000001"
HEAD = Head("default", 2, 0)
FAILURE = Failure("ConnectionError: no", "ConnectionError")
DIALECT = SqliteDialect()
ROUNDS = 12
"""Turns of all nodes in which anything that can come to rest does: two whole attempts, and what came before."""


class Held(NamedTuple):
    """A claim in the hands of a node: `waiting`, `running`, `returned`, `raised`, `half written`."""

    claim: Claim
    stage: str


class Node(NamedTuple):
    """What a node knows of itself."""

    letter: str
    life: int = 1
    mode: str = "awake"
    held: tuple[Held, ...] = ()

    @property
    def id(self) -> str:
        """A node that lost its lease goes on under another name."""
        return f"{self.letter}-{ord(self.letter)}-{self.life}"


class Budget(NamedTuple):
    """How often each fault may still happen."""

    stalls: int = 1
    kills: int = 1
    failures: int = 1
    cancels: int = 1


FAULTS = Budget()


class State(NamedTuple):
    """Everything that is not in the store."""

    now: int
    nodes: tuple[Node, ...]
    budget: Budget
    account: Account


class ClusterWorld:
    """The world that is explored."""

    def __init__(self, defect: str = "", budget: Budget = FAULTS, *, to_the_end: bool = False) -> None:
        self._to_the_end = to_the_end
        self._split = defect == "split commit"
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self._connection.create_function("windlass_now", 0, lambda: self._state.now)
        self._session = Session.of_writer(self._connection)
        if defect:
            self._session._queries = broken.changed("sqlite", defect)
        nodes = (Node("a"), Node("b"))
        self._state = State(1_000 * SECOND, nodes, budget, Account([], [], [], [], [], [], []))
        self._depth = 0
        self._run(migrate.make_current(DIALECT))
        job = NewJob(JOB, "default", "model:body", 2, "[[],{}]", options='{"max_retries":9}')
        self._run(jobs.submit(DIALECT, [[job]], ["default"]))
        self._note(accepted=[Accepted(JOB, None, self._seconds)])
        for node in nodes:
            self._register(node)

    # ------------------------------------------------------------------ the world

    def moves(self) -> Iterator[Move]:
        """By node, then what the outside does."""
        for node in self._state.nodes:
            yield from (Move(partial(self._made, act, node)) for act in self._acts(node))
        if self._state.budget.cancels:
            yield Move(partial(self._made, self._cancel))

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Undone by the database's own means."""
        before = self._state
        self._depth += 1
        self._connection.execute(f"SAVEPOINT s{self._depth}")
        try:
            yield
        finally:
            self._connection.execute(f"ROLLBACK TO s{self._depth}")
            self._connection.execute(f"RELEASE s{self._depth}")
            self._depth -= 1
            self._state = before

    def key(self) -> Hashable:
        """Without times: they matter only for the holders of leases, which are included."""
        stored = tuple(tuple(self._ask(question.format(now=self._state.now))) for question in _STORED)
        held = tuple(
            (node[:3], tuple((held.claim.fence, held.stage) for held in node.held)) for node in self._state.nodes
        )
        runs = tuple((run.fence, run.node, run.ended is None) for run in self._state.account.runs)
        return stored, held, runs, self._state.budget

    def problems(self) -> list[str]:
        """The judgement of the same oracle that judges chaos runs: now and, if asked for, once it all came to rest."""
        found = self._judged(AT_ANY_MOMENT)
        if self._to_the_end and not found:
            with self.branch():
                self._come_to_rest()
                found = [f"{problem} (once no more faults happen)" for problem in self._judged(AT_THE_END)]
        return found

    def _judged(self, checks: tuple[Check, ...]) -> list[str]:
        facts = Facts(self._state.account, read_tables(self._ask), 0, self._seconds, 0)
        return [f"{problem.rule}: {problem.seen}" for problem in judge(facts, checks)]

    def _come_to_rest(self) -> None:
        """No more faults: stalled nodes continue, leases of dead nodes expire, all nodes do what they can, in turn."""
        for node in self._state.nodes:
            if node.mode == "stalled":
                self._made(self._wake, node)
        for _ in range(ROUNDS):
            for node in self._state.nodes:
                if node.mode == "dead" and self._leased(node):
                    self._made(self._run_out, node)
            for letter in [node.letter for node in self._awake()]:
                self._made(self._beat, self._node(letter))
                self._made(self._look, self._node(letter))
                next_step = next(self._work(self._node(letter)))
                self._made(next_step, self._node(letter))

    # ------------------------------------------------------------------ what can happen

    def _acts(self, node: Node) -> Iterator[Callable[[Node], str]]:
        if node.mode == "awake":
            yield from self._work(node)
            yield from (self._beat, self._look)
            if self._state.budget.stalls:
                yield self._stall
        elif node.mode == "stalled":
            yield self._wake
        others = [other for other in self._state.nodes if other is not node and other.mode != "dead"]
        if node.mode != "dead" and self._state.budget.kills and others:
            yield self._kill
        if node.mode != "awake" and self._leased(node):
            yield self._run_out

    def _work(self, node: Node) -> Iterator[Callable[[Node], str]]:
        if not node.held:
            yield self._claim
            return
        match node.held[0].stage:
            case "waiting":
                yield self._enter
            case "running":
                yield self._return
                if self._state.budget.failures:
                    yield self._raise
            case "returned" | "raised":
                yield self._commit
            case "half written":
                yield self._commit_the_rest

    def _claim(self, node: Node) -> str:
        claimed = self._run(claims.claim(DIALECT, ClaimRequest(node.id, [HEAD], 1, 1, 0))).claims
        self._change(node, held=tuple(Held(claim, "waiting") for claim in claimed))
        return (
            f"{node.letter} claims the job as claim {claimed[0].fence}" if claimed else f"{node.letter} finds no work"
        )

    def _enter(self, node: Node) -> str:
        claim = node.held[0].claim
        run = Run(JOB, claim.fence, claim.attempts + 1, node.id, ord(node.letter), self._seconds)
        self._note(runs=[run])
        self._change(node, held=(Held(claim, "running"),))
        return f"{node.letter} enters the body of claim {claim.fence}"

    def _return(self, node: Node) -> str:
        return self._leave(node, "returned", "returned", "returns")

    def _raise(self, node: Node) -> str:
        self._spend(failures=1)
        return self._leave(node, "raised", "ConnectionError", "raises")

    def _leave(self, node: Node, stage: str, how: str, verb: str) -> str:
        claim = node.held[0].claim
        account = self._state.account
        runs = [
            run._replace(ended=self._seconds, how=how) if (run.fence, run.node) == (claim.fence, node.id) else run
            for run in account.runs
        ]
        self._state = self._state._replace(account=account._replace(runs=runs))
        self._change(node, held=(Held(claim, stage),))
        return f"the body of claim {claim.fence} {verb} on {node.letter}"

    def _commit(self, node: Node) -> str:
        claim, stage = node.held[0]
        transition = self._verdict(claim, stage)
        plan = (
            broken.without(jobs.apply(DIALECT, [transition]), "finish_hot")
            if self._split
            else jobs.apply(DIALECT, [transition])
        )
        (won,) = self._run(plan)
        rest = (Held(claim, "half written"),) if self._split and won and transition.terminal else ()
        self._change(node, held=rest)
        outcome = "it ended" if transition.terminal else "it is to be retried"
        return f"{node.letter} writes of claim {claim.fence} that {outcome}: {'done' if won else 'refused'}"

    def _commit_the_rest(self, node: Node) -> str:
        self._run(_delete(JOB))
        self._change(node, held=())
        return f"{node.letter} deletes the live row, in a transaction of its own"

    def _verdict(self, claim: Claim, stage: str) -> Transition:
        times = Times(self._state.now, self._state.now, 0)
        if stage == "returned":
            return succeeded(claim, times, f"[{claim.fence}]", holds_key=False)
        return retry_at(claim, times, FAILURE, 0)

    def _beat(self, node: Node) -> str:
        if self._run(cluster.beat(DIALECT, node.id, LEASE, 0)):
            self._leased_now(node)
            return f"{node.letter} beats"
        self._change(node, life=node.life + 1)
        self._register(self._node(node.letter))
        return f"{node.letter} beats, hears that it was given up, and goes on under a new name"

    def _look(self, node: Node) -> str:
        marked = self._run(cluster.mark_lost(DIALECT, node.id))
        found = self._run(cluster.recover(DIALECT, 3))
        self._note(taken=[Taken(name, self._seconds) for name in found.recovered])
        back = sum(found.recovered.values())
        return f"{node.letter} looks for lost nodes: {marked} given up, {back} jobs back"

    # ------------------------------------------------------------------ faults

    def _stall(self, node: Node) -> str:
        self._spend(stalls=1)
        self._change(node, mode="stalled")
        return f"{node.letter} stands still"

    def _wake(self, node: Node) -> str:
        self._change(node, mode="awake")
        return f"{node.letter} wakes up"

    def _kill(self, node: Node) -> str:
        self._spend(kills=1)
        self._note(faults=[Fault("kill", ord(node.letter), self._seconds)])
        self._change(node, mode="dead", held=())
        return f"{node.letter} is killed"

    def _run_out(self, node: Node) -> str:
        """Nodes that are awake send heartbeats meanwhile."""
        self._state = self._state._replace(now=self._state.now + 2 * LEASE)
        for other in self._awake():
            self._beat(other)
        return f"the lease of {node.letter} runs out"

    def _cancel(self) -> str:
        self._spend(cancels=1)
        moved = self._run(moves.cancel(DIALECT, [JOB])).ended
        self._note(canceled=[Canceled(JOB, self._seconds) for _ in moved])
        return f"somebody cancels the job: {bool(moved)}"

    # ------------------------------------------------------------------ state

    def _made(self, act: Callable[..., str], *args: Any) -> str:
        self._state = self._state._replace(now=self._state.now + STEP)
        return act(*args)

    @property
    def _seconds(self) -> float:
        return self._state.now / SECOND

    def _node(self, letter: str) -> Node:
        return next(node for node in self._state.nodes if node.letter == letter)

    def _awake(self) -> list[Node]:
        return [node for node in self._state.nodes if node.mode == "awake"]

    def _change(self, node: Node, **changes: Any) -> None:
        nodes = tuple(each._replace(**changes) if each.letter == node.letter else each for each in self._state.nodes)
        self._state = self._state._replace(nodes=nodes)

    def _spend(self, **faults: int) -> None:
        left = {name: getattr(self._state.budget, name) - count for name, count in faults.items()}
        self._state = self._state._replace(budget=self._state.budget._replace(**left))

    def _note(self, **entries: list[Any]) -> None:
        """Lists are copied: states that were left are come back to."""
        account = self._state.account
        added = {name: [*getattr(account, name), *new] for name, new in entries.items()}
        self._state = self._state._replace(account=account._replace(**added))

    def _register(self, node: Node) -> None:
        self._run(cluster.register(DIALECT, cluster.NodeRow(node.id, node.letter, ord(node.letter), "0", None), LEASE))
        self._leased_now(node)

    def _leased_now(self, node: Node) -> None:
        self._note(leases=[Lease(node.id, self._seconds, self._seconds + LEASE / SECOND)])

    def _leased(self, node: Node) -> bool:
        return bool(
            self._ask(f"SELECT 1 FROM windlass_node WHERE id = '{node.id}' AND lease_until >= {self._state.now}")
        )

    def _run(self, plan: Plan[T]) -> T:
        return drive(plan, next(plan), self._session.execute)

    def _ask(self, question: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(question).fetchall()


_STORED = (
    "SELECT status, fence, attempts, crash_count, node FROM windlass_hot",
    "SELECT status, fence, attempts, crash_count, result FROM windlass_done",
    "SELECT fence, node, outcome FROM windlass_attempt ORDER BY fence",
    "SELECT id, state, lease_until >= {now} FROM windlass_node ORDER BY id",
)


def _delete(job: str) -> Plan[None]:
    yield Step("finish_hot", {"ids": DIALECT.ids([job])})
