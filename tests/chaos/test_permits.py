"""Permits, judged on facts made by hand."""

from tests.chaos.cases import OTHER, A, B, facts, gate, killed, leased, run
from tests.chaos.permits import permits_stay_below_their_cap
from tests.chaos.witness import Run

LEASES = [leased(A, 0, 100), leased(B, 0, 100)]


def inside(started: float, ended: float | None, node: str = A, job: str = "job-1") -> Run:
    return run(1, node, started, ended, "returned" if ended else None, job=job, resource="stripe")


def beyond(runs: list[Run], cap: int = 1, **account: list) -> list[tuple[str | None, str]]:
    account_facts = {"leases": LEASES, **account, "runs": runs}
    return list(permits_stay_below_their_cap(facts(account=account_facts, tables={"gates": (gate(cap),)})))


def test_runs_one_after_the_other_stay_below_a_cap_of_one():
    """J6.2: a permit is free when the body has ended."""
    assert beyond([inside(10, 20), inside(20, 30, B, OTHER)]) == []


def test_a_run_beyond_the_cap_is_found_with_those_beside_it():
    """J6.2: never exceeded."""
    ((job, seen),) = beyond([inside(10, 20), inside(15, 30, B, OTHER)])
    assert job == OTHER
    assert seen == f"entered stripe, which admits 1, beside job-1 on {A}"
    assert beyond([inside(10, 20), inside(15, 30, B, OTHER)], cap=2) == []


def test_a_run_whose_lease_has_run_out_holds_no_permit():
    """J6.2: freed when its node is lost, although its body may go on."""
    runs = [inside(10, 50), inside(30, 40, B, OTHER)]
    assert beyond(runs, leases=[leased(A, 0, 29), leased(B, 0, 100)]) == []
    assert len(beyond(runs, leases=[leased(A, 0, 31), leased(B, 0, 100)])) == 1


def test_a_run_on_a_killed_worker_is_over():
    """J6.2: no body runs in a dead process, whatever its lease."""
    runs = [inside(10, None), inside(30, 40, B, OTHER)]
    assert beyond(runs, faults=[killed(A, 20)]) == []
    assert len(beyond(runs)) == 1


def test_a_resource_without_a_cap_is_no_resource():
    """J6.2: the workload and the store must speak of the same thing."""
    account_facts = {"leases": LEASES, "runs": [inside(10, 20)]}
    (found,) = permits_stay_below_their_cap(facts(account=account_facts))
    assert found == (None, "1 runs were behind stripe, which has no cap")
