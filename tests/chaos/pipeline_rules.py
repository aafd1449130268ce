"""What must be true of executions of pipelines, and of what they publish, in every run."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product

from tests.chaos.facts import ExecutionRow, Facts, HandoffRow
from tests.chaos.pipelines import SUBSCRIBERS, Order
from tests.chaos.witness import Run

Found = Iterator[tuple[str | None, str]]


def executions_end_as_planned(facts: Facts) -> Found:
    """Each succeeds with the right result and the planned rejects, or dies of the line that had to fail."""
    rejects = facts.tables.rejects
    for execution in facts.tables.executions:
        if execution.pipeline not in SUBSCRIBERS:
            continue
        order = planned(facts, execution)
        if order is None:
            yield execution.id, f"has the key {execution.key}, which was never asked for"
        elif execution.status == "SUCCEEDED":
            yield from ((execution.id, seen) for seen in _unlike(facts, execution, order, rejects.get(execution.id, 0)))
        elif not _has_cause(facts, execution, order):
            yield execution.id, f"is {execution.status} ({_reason(facts, execution)}), without a line that fails so"


def published_items_are_admitted_once(facts: Facts) -> Found:
    """Each item of a success is one execution of the subscriber, which succeeds with it; no other is handed over."""
    handed: dict[str | None, list[HandoffRow]] = defaultdict(list)
    for handoff in facts.tables.handoffs:
        handed[handoff.source].append(handoff)
    by_id = {execution.id: execution for execution in facts.tables.executions}
    for execution in facts.tables.executions:
        order = planned(facts, execution)
        if order is None:
            continue
        succeeded = execution.status == "SUCCEEDED"
        wanted = {key.format(execution.id): value for key, value in order.published.items()} if succeeded else {}
        found = Counter(handoff.key for handoff in handed[execution.id])
        for key in sorted(wanted.keys() | found.keys()):
            if found[key] != (key in wanted):
                yield execution.id, f"is {execution.status} and has handed over {key} {found[key]} times"
        for handoff in handed[execution.id]:
            seen = _not_admitted(facts, handoff, by_id, wanted.get(handoff.key))
            if seen:
                yield execution.id, f"has published {handoff.key}, which {seen}"
    admitted = {handoff.execution for handoff in facts.tables.handoffs}
    subscribers = {subscriber for _, subscriber in SUBSCRIBERS.values()}
    for execution in facts.tables.executions:
        if execution.pipeline in subscribers and execution.id not in admitted:
            yield execution.id, f"is an execution of {execution.pipeline} that no hand-off was admitted as"


def steps_run_again_only_after_a_failure_or_a_lost_claim(facts: Facts) -> Found:
    """What a step returned under a claim that was not lost is stored: that step, with that item, is over."""
    for step, runs in facts.steps.items():
        stored = [run for run in runs if run.how == "returned" and _is_kept(facts, run)]
        for run, later in product(stored, runs):
            if run.ended is not None and run.ended <= later.started and _follows(facts, run, later):
                yield run.job, f"step {step} had returned under claim {run.fence}, and ran again on {later.node}"


def a_step_is_entered_once_for_each_claim(facts: Facts) -> Found:
    """An attempt at a step with an item is entered once for each claim."""
    entered = Counter((run.job, run.fence, run.step, run.attempt) for run in facts.account.steps)
    for (job, fence, step, attempt), times in entered.items():
        if times > 1:
            yield job, f"attempt {attempt} at step {step} was entered {times} times by claim {fence}"


def planned(facts: Facts, execution: ExecutionRow) -> Order | None:
    """The order that an execution was submitted for; its key ends in the number."""
    number = (execution.key or "").rpartition("-")[2]
    if execution.pipeline not in SUBSCRIBERS or not number.isdecimal():
        return None
    order = facts.orders.get(int(number))
    return order if order is not None and order.pipeline == execution.pipeline else None


def _is_kept(facts: Facts, run: Run) -> bool:
    """Whether the claim of a run was not lost, as far as that is known."""
    outcome = facts.outcome(run)
    return outcome is not None and outcome.outcome != "lost"


def _follows(facts: Facts, run: Run, later: Run) -> bool:
    """Whether a run is of a later claim: a worker that stood still may go on with one that it has lost meanwhile."""
    return later.fence > run.fence if later.job == run.job else _is_kept(facts, later)


def _unlike(facts: Facts, execution: ExecutionRow, order: Order, rejects: int) -> Iterator[str]:
    done = facts.done.get(execution.id)
    if order.hopeless >= 0:
        yield f"has succeeded, and its line {order.hopeless} fails for good"
    elif done is not None and done.result != order.result:
        yield f"has the result {done.result}, not {order.result}"
    elif rejects != len(order.rejected):
        yield f"has rejected {rejects} items, not {len(order.rejected)}"


def _has_cause(facts: Facts, execution: ExecutionRow, order: Order) -> bool:
    """Whether an execution that has not succeeded died of its line, or lost its workers too often."""
    reason = _reason(facts, execution)
    if reason == "worker_lost":
        return _lost(facts, execution.id) > facts.crash_budget
    return execution.status == "DLQ" and order.hopeless >= 0 and reason == order.reason


def _reason(facts: Facts, execution: ExecutionRow) -> str | None:
    done = facts.done.get(execution.id)
    return done.reason if done is not None else None


def _lost(facts: Facts, execution: str) -> int:
    """How often claims of an execution or of its parts were lost."""
    jobs = {execution} | {job.id for job in facts.tables.jobs.values() if job.parent_id == execution}
    return sum(row.outcome == "lost" for job in jobs for row in facts.history.get(job, {}).values())


def _not_admitted(facts: Facts, handoff: HandoffRow, by_id: dict[str, ExecutionRow], value: object) -> str:
    execution = by_id.get(handoff.execution or "")
    if handoff.status != "ADMITTED" or execution is None:
        return f"is {handoff.status} as {handoff.execution}"
    if (execution.source, execution.key, execution.pipeline) != (handoff.id, handoff.key, handoff.subscriber):
        return f"is execution {execution.id} of {execution.pipeline}, with the key {execution.key}"
    done = facts.done.get(execution.id)
    if execution.status != "SUCCEEDED":
        founded = _reason(facts, execution) == "worker_lost" and _lost(facts, execution.id) > facts.crash_budget
        return "" if founded else f"is execution {execution.id}, {execution.status} ({_reason(facts, execution)})"
    return "" if done is not None and done.result == value else f"has become {done.result if done else 'nothing'}"
