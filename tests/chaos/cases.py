"""Facts made by hand: one job that ran once and succeeded, and ways to change that."""

from dataclasses import replace
from typing import Any

from tests.chaos.facts import AttemptRow, DoneRow, ExecutionRow, Facts, GateRow, HandoffRow, HotRow, JobRow, Tables
from tests.chaos.pipelines import Order
from tests.chaos.witness import Accepted, Account, Fault, Lease, Run

JOB = "job-1"
OTHER = "job-2"
A, B = "host-1-aa", "host-2-bb"
"""Two nodes; the number is their worker's pid."""


def run(
    fence: int = 1,
    node: str = A,
    started: float = 10,
    ended: float | None = 11,
    how: str | None = "returned",
    **more: Any,
) -> Run:
    plain = Run(JOB, fence, 1, node, int(node.split("-")[1]), started, ended, how)
    return plain._replace(**more)


def attempt(fence: int = 1, outcome: str = "succeeded", node: str = A, **more: Any) -> AttemptRow:
    return AttemptRow(JOB, fence, node, outcome, None, True)._replace(**more)


def done(status: str = "SUCCEEDED", fence: int = 1, attempts: int = 1, **more: Any) -> DoneRow:
    return DoneRow(JOB, status, fence, attempts, 0, [fence], None, None)._replace(**more)


def job(job_id: str = JOB, **more: Any) -> JobRow:
    return JobRow(job_id, "shop:charge", {}, None, None, None)._replace(**more)


def hot(status: str = "RUNNING", fence: int = 1, node: str | None = A) -> HotRow:
    return HotRow(JOB, status, fence, node)


def killed(node: str, at: float) -> Fault:
    return Fault("kill", int(node.split("-")[1]), at)


def gate(cap: int, in_use: int = 0) -> GateRow:
    return GateRow("stripe", cap, in_use)


def leased(node: str, since: float, until: float) -> Lease:
    return Lease(node, since, until)


def step(fence: int = 1, **more: Any) -> Run:
    """A run of a step of an execution."""
    return run(fence, **{"step": f"{JOB}:1:0", **more})


def publishing(order: Order, *, status: str = "SUCCEEDED", result: Any = None, admitted: int = 1, **more: Any) -> Facts:
    """An execution of an order for one line, and what became of the item that it has published."""
    ended = done("SUCCEEDED" if status == "SUCCEEDED" else "FAILED", result=result, reason=more.pop("reason", None))
    key = f"{JOB}:0"
    executions = [ExecutionRow(JOB, "orders", "plain-1", status, None)]
    handoffs = [HandoffRow(f"h{n}", "books", key, JOB, "ADMITTED", f"{OTHER}{n}") for n in range(admitted)]
    executions += [ExecutionRow(f"{OTHER}{n}", "books", key, "SUCCEEDED", f"h{n}") for n in range(admitted)]
    tables = {
        "jobs": {JOB: job(target="pipeline/orders@1#0")},
        "done": (ended, *(done(id=f"{OTHER}{n}", result=0) for n in range(admitted))),
        "executions": tuple(executions),
        "handoffs": tuple(handoffs),
    }
    return facts(account={"runs": []}, tables={**tables, **more}, orders={1: order})


SOUND = Facts(
    account=Account(
        runs=[run()],
        leases=[leased(A, 0, 100)],
        taken=[],
        accepted=[Accepted(JOB, None, 9)],
        canceled=[],
        faults=[],
        steps=[],
    ),
    tables=Tables(jobs={JOB: job()}, done=(done(),), history=(attempt(),)),
    began=0,
    ended=100,
    lease_seconds=15,
)
"""Nothing is wrong with it."""


def facts(*, account: dict[str, Any] | None = None, tables: dict[str, Any] | None = None, **more: Any) -> Facts:
    """The sound ones, changed."""
    return replace(
        SOUND, account=SOUND.account._replace(**(account or {})), tables=replace(SOUND.tables, **(tables or {})), **more
    )
