"""Permits, judged by the bodies that ran at the same time, and by what the store counts at the end."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.facts import Facts
from tests.chaos.leases import Deaths, Leases, claimed_by, over_at
from tests.chaos.witness import Run


def permits_stay_below_their_cap(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(e) Never more runs behind a resource than it admits; those whose lease had run out hold no permit any more."""
    caps = {gate.name: gate.cap for gate in facts.tables.gates}
    leases = Leases(facts.account.leases)
    behind: dict[str, list[Run]] = defaultdict(list)
    for run in (*facts.account.runs, *facts.account.steps):
        if run.resource is not None:
            behind[run.resource].append(run)
    for resource, runs in behind.items():
        cap = caps.get(resource)
        if cap is None:
            yield None, f"{len(runs)} runs were behind {resource}, which has no cap"
        else:
            yield from _beyond(facts, leases, resource, cap, runs)


def _beyond(facts: Facts, leases: Leases, resource: str, cap: int, runs: list[Run]) -> Iterator[tuple[str | None, str]]:
    """At every entry: the running bodies whose node holds its lease."""
    deaths = Deaths(facts)
    inside: list[tuple[Run, float]] = []
    for run in sorted(runs, key=lambda run: run.started):
        inside = [(other, over) for other, over in inside if over > run.started]
        inside.append((run, over_at(facts, deaths, run)))
        holding = [other for other, _ in inside if leases.held(claimed_by(facts, other), run.started)]
        if len(holding) > cap:
            others = ", ".join(f"{other.job} on {other.node}" for other in holding if other is not run)
            yield run.job, f"entered {resource}, which admits {cap}, beside {others}"


def permits_return_to_zero(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(e) Once nothing runs, nothing is in use."""
    for gate in facts.tables.gates:
        if gate.in_use:
            yield None, f"{gate.name} counts {gate.in_use} in use, and nothing runs"
    if facts.tables.permits:
        yield None, f"{facts.tables.permits} permits are held, and nothing runs"
