"""The oracle: facts in, violations out. Pure functions, one for each sentence that must be true of every run.

It judges by invariants and not by a count of completions: a job that ran twice without cause, or whose outcome was
written by a worker that had lost it, is found although every job "completed".
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.chaos.facts import AttemptRow, DoneRow, Facts, JobRow
from tests.chaos.flow_rules import followers_end_as_their_parents_say, followers_run_after_the_end_they_follow
from tests.chaos.leases import Deaths, Leases, claimed_by, over_at
from tests.chaos.permits import permits_return_to_zero, permits_stay_below_their_cap
from tests.chaos.pipeline_rules import (
    a_step_is_entered_once_for_each_claim,
    executions_end_as_planned,
    published_items_are_admitted_once,
    steps_run_again_only_after_a_failure_or_a_lost_claim,
)
from tests.chaos.witness import Run

ENDS = {"SUCCEEDED": {"succeeded"}, "FAILED": {"failed", "lost"}}
"""What the history must say of the last claim of a job that ended so."""
COUNTED = {"succeeded", "retried", "failed"}
"""Outcomes that spend an attempt."""
LEASES_TO_OUTLAST = 3


class Violation(NamedTuple):
    """A sentence that was not true, of which job, and what was seen instead."""

    rule: str
    job: str | None
    seen: str

    def __str__(self) -> str:
        return f"{self.rule}: {f'job {self.job}: ' if self.job else ''}{self.seen}"


Check = Callable[[Facts], Iterator[tuple[str | None, str]]]


def every_accepted_job_ends_once(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(a) Every id that was accepted, or is stored all the same, is in exactly one terminal state, and nowhere else."""
    for job in {accepted.job for accepted in facts.account.accepted} | facts.tables.jobs.keys():
        stored, ended, live = job in facts.tables.jobs, facts.done.get(job), facts.hot.get(job)
        if not stored:
            yield job, "was accepted, and the store does not know it"
        elif ended is None:
            yield job, f"has not ended: it is {live.status if live else 'nowhere'}"
        elif live is not None:
            yield job, f"is {ended.status} and {live.status} at once"


def no_job_is_two_things_at_once(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(a) What holds at any moment: a job lives or has ended, never both."""
    for job in facts.done.keys() & facts.hot.keys():
        yield job, f"is {facts.done[job].status} and {facts.hot[job].status} at once"


def an_outcome_is_written_once_by_its_holder(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(a) The outcome that stands is that of the last claim, and of the very run that held it."""
    for done in facts.tables.done:
        history, runs = facts.history.get(done.id, {}), facts.runs.get(done.id, [])
        final = [row for row in history.values() if row.outcome in {"succeeded", "failed"}]
        last = history.get(done.fence)
        if len(final) > 1:
            yield done.id, f"ended {len(final)} times: {_listed(final)}"
        if done.status in ENDS and (last is None or last.outcome not in ENDS[done.status]):
            yield done.id, f"is {done.status} by claim {done.fence}, of which the history says {_word(last)}"
        later = [run.fence for run in runs if run.fence > done.fence]
        if later:
            yield done.id, f"ended with claim {done.fence}, and ran again with claim {later[0]}"
        if done.status == "SUCCEEDED" and runs and done.result != [done.fence]:
            yield done.id, f"ended with claim {done.fence}, but its result was brought by claim {done.result}"


def runs_overlap_only_after_a_lost_lease(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(b) Two runs of a job, a step or a business key overlap only if the earlier one's lease had run out."""
    leases, deaths = Leases(facts.account.leases), Deaths(facts)
    for runs in [*facts.runs.values(), *facts.steps.values(), *_runs_by_business_key(facts)]:
        for earlier, later in _overlapping(runs, lambda run: over_at(facts, deaths, run)):
            if leases.held(claimed_by(facts, earlier), later.started):
                of_whom = "" if earlier.job == later.job else f" of job {earlier.job}"
                beside = f"claim {earlier.fence}{of_whom} was running on {earlier.node}, which held its lease"
                yield later.job, f"claim {later.fence} ran on {later.node} from {later.started:.3f} while {beside}"


def no_node_is_given_up_while_it_holds_its_lease(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(b) Jobs are taken from a node only once its lease has run out: a slow job on a live node is never touched."""
    leases = Leases(facts.account.leases)
    for taken in facts.account.taken:
        if leases.held(taken.node, taken.at):
            yield None, f"node {taken.node} was given up at {taken.at:.3f}, while it held its lease"


def attempts_counted_are_attempts_completed(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(c) `attempts` is the number of bodies that ended and were counted, as those bodies themselves saw it."""
    for done in facts.tables.done:
        counted = [row for row in facts.history.get(done.id, {}).values() if row.outcome in COUNTED]
        if len(counted) != done.attempts and not facts.is_of_pipeline(done.id):
            yield done.id, f"counts {done.attempts} attempts, its history has {len(counted)}: {_listed(counted)}"
    runs = {(run.job, run.fence): run for run in facts.account.runs}
    for row in facts.tables.history:
        if facts.is_of_pipeline(row.job):
            continue
        seen = _contradicted(row, runs.get((row.job, row.fence)), facts.tables.jobs.get(row.job))
        if seen:
            yield row.job, f"claim {row.fence} is {row.outcome} in the history, but its body {seen}"


def every_claim_leaves_one_row_of_history(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(c) A claim raises the fence by one, so does its way back: history has all odd fences, without a gap."""
    for job, history in facts.history.items():
        if sorted(history) != list(range(1, 2 * len(history), 2)):
            yield job, f"has gaps in its history: claims {sorted(history)}"
    for run in facts.account.runs:
        if run.job in facts.done and facts.outcome(run) is None:
            yield run.job, f"claim {run.fence} ran on {run.node}, and the history does not know it"


def a_claim_is_entered_once(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(b) A body is entered once for each claim, also one after the other: a second run needs a claim of its own."""
    entered = Counter((run.job, run.fence) for run in facts.account.runs)
    yield from (
        (job, f"was entered {times} times by claim {fence}") for (job, fence), times in entered.items() if times > 1
    )


def dead_letters_have_a_real_cause(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(d) What is FAILED failed as often as it may, or refused to be retried, or lost its worker too often."""
    for done in facts.tables.done:
        job = facts.tables.jobs.get(done.id)
        if done.status == "FAILED" and job is not None and not facts.is_of_pipeline(done.id):
            history = facts.history.get(done.id, {})
            seen = _unfounded(facts, done, job, history.get(done.fence), list(history.values()))
            if seen:
                yield done.id, f"is FAILED as {done.reason}, but {seen}"


def dead_letters_are_the_failed_jobs(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(d) What is FAILED has an envelope, and nothing else has."""
    kept = facts.tables.dead_letters
    if kept is not None:
        failed = {done.id for done in facts.tables.done if done.status == "FAILED"}
        yield from ((job, "is FAILED, and has no envelope") for job in failed - kept)
        yield from ((job, "has an envelope, and is not FAILED") for job in kept - failed)


def nothing_runs_without_a_lease(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(f) No job stays RUNNING in the name of a node that has no lease."""
    for orphan in facts.orphans:
        yield orphan.job, f"claim {orphan.fence} was RUNNING without a live lease for {orphan.seconds:.1f} s"


def the_run_outlasts_three_leases(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """(g) A shorter run would prove nothing about recovery."""
    lasted = facts.ended - facts.began
    if lasted < LEASES_TO_OUTLAST * facts.lease_seconds:
        yield None, f"it lasted {lasted:.1f} s, less than {LEASES_TO_OUTLAST} leases of {facts.lease_seconds:g} s"


def a_key_names_one_job(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """Idempotency keys name one job for ever, for every caller; business keys are free once their jobs have ended."""
    named: dict[str, set[str]] = defaultdict(set)
    for accepted in facts.account.accepted:
        if accepted.key is not None:
            named[accepted.key].add(accepted.job)
    for job in facts.tables.jobs.values():
        if job.idempotency_key is not None:
            named[job.idempotency_key].add(job.id)
    for key, jobs in named.items():
        if jobs != {facts.tables.keys.get(key)}:
            some = ", ".join(sorted(jobs)[:3])
            yield None, f"the key {key} names {len(jobs)} jobs ({some}), its ledger {facts.tables.keys.get(key)}"
    for key, holder in facts.tables.live_keys.items():
        if holder not in facts.hot:
            yield holder, f"holds the business key {key}, and does not live"


def what_was_canceled_stays_canceled(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """A cancel that answered True stands, whatever the body then returned."""
    for canceled in facts.account.canceled:
        done = facts.done.get(canceled.job)
        if done is None or done.status != "CANCELED":
            yield canceled.job, f"was canceled, and is {done.status if done else 'alive'}"


def callbacks_follow_once(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """An outcome with a callback has exactly one job that follows it; what has none is followed by nothing."""
    linked = {row.job for row in facts.tables.flow}
    followers = Counter(
        job.parent_id
        for job in facts.tables.jobs.values()
        if job.parent_id and job.id not in linked and not facts.is_of_pipeline(job.id)
    )
    for done in facts.tables.done:
        wanted = {"SUCCEEDED": "on_success", "FAILED": "on_failure"}.get(done.status)
        job = facts.tables.jobs.get(done.id)
        expected = int(job is not None and wanted in job.options)
        if followers[done.id] != expected:
            yield done.id, f"is {done.status} and has {followers[done.id]} callbacks, not {expected}"


def processes_leave_in_good_order(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """A worker ends only when it is killed or stopped, and then with code 0."""
    for exit_ in facts.odd_exits:
        yield None, exit_


AT_ANY_MOMENT: tuple[Check, ...] = (
    no_job_is_two_things_at_once,
    an_outcome_is_written_once_by_its_holder,
    every_claim_leaves_one_row_of_history,
    a_claim_is_entered_once,
    runs_overlap_only_after_a_lost_lease,
    no_node_is_given_up_while_it_holds_its_lease,
    permits_stay_below_their_cap,
    nothing_runs_without_a_lease,
    processes_leave_in_good_order,
    followers_run_after_the_end_they_follow,
    a_step_is_entered_once_for_each_claim,
)
"""True while work is going on."""
AT_THE_END: tuple[Check, ...] = (
    every_accepted_job_ends_once,
    attempts_counted_are_attempts_completed,
    dead_letters_have_a_real_cause,
    dead_letters_are_the_failed_jobs,
    permits_return_to_zero,
    the_run_outlasts_three_leases,
    a_key_names_one_job,
    what_was_canceled_stays_canceled,
    callbacks_follow_once,
    followers_end_as_their_parents_say,
    executions_end_as_planned,
    published_items_are_admitted_once,
    steps_run_again_only_after_a_failure_or_a_lost_claim,
)
"""True once everything has come to rest, in addition."""


def judge(facts: Facts, checks: tuple[Check, ...] = (*AT_ANY_MOMENT, *AT_THE_END)) -> list[Violation]:
    """Everything that is not as it must be."""
    return [Violation(check.__name__, job, seen) for check in checks for job, seen in check(facts)]


def _overlapping(runs: list[Run], over: Callable[[Run], float]) -> Iterator[tuple[Run, Run]]:
    """Pairs that ran at the same time: the earlier claim first, of different jobs the earlier start."""
    open_: list[Run] = []
    for run in sorted(runs, key=lambda run: run.started):
        open_ = [other for other in open_ if over(other) > run.started]
        for other in open_:
            late_starter = other.job == run.job and other.fence > run.fence
            yield (run, other) if late_starter else (other, run)
        open_.append(run)


def _runs_by_business_key(facts: Facts) -> Iterator[list[Run]]:
    """Jobs take a key in turn; the body of a canceled one may go on for a moment after its key is free."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in facts.account.runs:
        job, done = facts.tables.jobs.get(run.job), facts.done.get(run.job)
        if job is not None and job.business_key is not None and not (done and done.status == "CANCELED"):
            found[job.business_key].append(run)
    yield from found.values()


def _contradicted(row: AttemptRow, run: Run | None, job: JobRow | None) -> str:
    """What the body saw that cannot be, given the outcome. Starting a process counts towards the timeout."""
    timed_out = row.error_class == "JobTimeoutError"
    if row.outcome not in {*COUNTED, "snoozed"}:
        return ""
    if run is None:
        in_process = job is not None and job.options.get("executor") == "process"
        return "" if timed_out and in_process else "was never entered"
    if timed_out:
        return "returned" if run.how == "returned" else ""
    how = run.how or "never ended"
    expected = {"succeeded": how == "returned", "snoozed": how == "Snooze"}
    fine = expected.get(row.outcome, run.how not in {None, "returned", "Snooze", "CancelledError"})
    return "" if fine else how


def _unfounded(facts: Facts, done: DoneRow, job: JobRow, last: AttemptRow | None, history: list[AttemptRow]) -> str:
    """What is missing of the cause that a dead letter names."""
    match done.reason:
        case "retry_exhausted":
            failures = [row for row in history if row.outcome in {"retried", "failed"}]
            allowed = job.max_retries + 1
            return "" if len(failures) == allowed else f"it failed {len(failures)} times of {allowed}"
        case "non_retryable":
            raised = {run.how for run in facts.runs.get(done.id, []) if run.fence == done.fence}
            return "" if raised == {"DoNotRetry"} else f"its body ended by {raised or 'nothing'}"
        case "worker_lost":
            lost = [row for row in history if row.outcome == "lost"]
            enough = len(lost) == done.crash_count == facts.crash_budget + 1 and last in lost
            return "" if enough else f"it was lost {len(lost)} times, of which {done.crash_count} were charged"
        case reason:
            return f"nothing in this workload fails as {reason}"


def _listed(rows: list[AttemptRow]) -> str:
    return ", ".join(f"claim {row.fence} {row.outcome}" for row in sorted(rows, key=lambda row: row.fence)) or "none"


def _word(row: AttemptRow | None) -> str:
    return row.outcome if row is not None else "nothing"
