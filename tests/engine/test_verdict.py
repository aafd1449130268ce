"""What becomes of an attempt, row by row: every ending under every policy."""

from datetime import timedelta
from typing import NamedTuple

import pytest

from windlass import DoNotRetry, JobTimeoutError, RetryAfter
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.backoff import Backoff
from windlass.domain.branches import Judgement, PredicateError
from windlass.domain.job import Claim, Payload
from windlass.domain.lanes import Lane
from windlass.domain.transition import NEVER_DUE, Failure, Transition
from windlass.engine.attempt import (
    Attempt,
    Deferred,
    Died,
    Directed,
    Ending,
    Expired,
    NotChosen,
    NotKnownHere,
    NotSignaled,
    Raised,
    Refused,
    Released,
    Returned,
    Snoozed,
)
from windlass.engine.verdict import Policies, failed_for_good, verdict
from windlass.errors import SignalTimeoutError, TargetNotAllowedError, WorkerLostError
from windlass.failure.retry import DefaultRetryPolicy
from windlass.runtime.error_classes import class_name
from windlass.submission.stored_options import DEFAULTS, RetryRules, StoredOptions, StoredWait

LOST = WorkerLostError("its process was killed")


class Refusing(DefaultRetryPolicy):
    """Allows no retry."""

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        return False


class Slow(DefaultRetryPolicy):
    """Has every retry wait for a minute."""

    def get_delay(self, attempt: int) -> timedelta:
        return timedelta(minutes=1)


def described(error: BaseException) -> Failure:
    return Failure(f"<{error}>", type(error).__name__, "Traceback")


def under(retry: DefaultRetryPolicy | None = None, *, crash_budget: int = 3) -> Policies:
    return Policies(retry or DefaultRetryPolicy(), described, str.upper, crash_budget)


def attempt(
    options: StoredOptions = DEFAULTS,
    *,
    attempts: int = 0,
    crashes: int = 0,
    key: str | None = None,
    lane: str | None = None,
) -> Attempt:
    claim = Claim("0198", 7, "mail", "shop:charge", attempts, crashes, 2, 10, 20, lane)
    return Attempt(claim, Payload("[]", None, None, None, None, key, 5), received=0.0, options=options)


class Row(NamedTuple):
    """Of this attempt, which ended so, this becomes."""

    of: Attempt
    ending: Ending
    status: str
    outcome: str
    attempts: int
    """Counted, once it is written."""
    reason: str | None = None
    delay_us: int = 0
    error: str | None = None
    note: str = ""
    policies: Policies = under()


RETRIES = StoredOptions(max_retries=2, backoff=Backoff.fixed(4))
WAITS = StoredOptions(wait=StoredWait("order:7", 60_000_000))
ROWS = {
    "returned": Row(attempt(), Returned("41"), "SUCCEEDED", "succeeded", 1),
    "returned in its third attempt": Row(attempt(attempts=2), Returned(None), "SUCCEEDED", "succeeded", 3),
    # ------------------------------------------------------------------ raised
    "raised, no retries": Row(
        attempt(), Raised(KeyError("x")), "FAILED", "failed", 1, "retry_exhausted", error="<'x'>"
    ),
    "raised, retries left": Row(
        attempt(RETRIES), Raised(KeyError("x")), "PENDING", "retried", 1, delay_us=4_000_000, error="<'x'>"
    ),
    "raised, last retry": Row(
        attempt(RETRIES, attempts=1), Raised(KeyError("x")), "PENDING", "retried", 2, delay_us=4_000_000, error="<'x'>"
    ),
    "raised, retries used up": Row(
        attempt(RETRIES, attempts=2), Raised(KeyError("x")), "FAILED", "failed", 3, "retry_exhausted", error="<'x'>"
    ),
    "ran out of time": Row(
        attempt(RETRIES), Raised(JobTimeoutError("late")), "PENDING", "retried", 1, delay_us=4_000_000, error="<late>"
    ),
    "raised DoNotRetry": Row(
        attempt(RETRIES), Raised(DoNotRetry("no")), "FAILED", "failed", 1, "non_retryable", error="<no>"
    ),
    "raised RetryAfter": Row(
        attempt(RETRIES), Raised(RetryAfter(9)), "PENDING", "retried", 1, delay_us=9_000_000, error=f"<{RetryAfter(9)}>"
    ),
    "the policy refuses": Row(
        *(attempt(RETRIES), Raised(KeyError("x")), "FAILED", "failed", 1, "non_retryable"),
        error="<'x'>",
        note="the retry policy refused",
        policies=under(Refusing()),
    ),
    "the policy delays": Row(
        *(attempt(RETRIES), Raised(KeyError("x")), "PENDING", "retried", 1),
        delay_us=60_000_000,
        error="<'x'>",
        policies=under(Slow()),
    ),
    "a rule gives up": Row(
        attempt(RETRIES._replace(rules=RetryRules(give_up_on=frozenset({class_name(KeyError)})))),
        *(Raised(KeyError("x")), "FAILED", "failed", 1, "non_retryable"),
        error="<'x'>",
        note="its class is in give_up_on",
    ),
    "no rule retries": Row(
        attempt(RETRIES._replace(rules=RetryRules(retry_on=frozenset({class_name(OSError)})))),
        *(Raised(KeyError("x")), "FAILED", "failed", 1, "non_retryable"),
        error="<'x'>",
        note="its class is not in retry_on",
    ),
    # ------------------------------------------------------------------ its body not entered
    "refused": Row(
        *(attempt(RETRIES), Refused(TargetNotAllowedError("denied"), "target_not_allowed"), "FAILED", "failed", 0),
        reason="target_not_allowed",
        error="<denied>",
    ),
    "not known here": Row(attempt(), NotKnownHere("no such function"), "PENDING", "passed_over", 0),
    "not chosen": Row(attempt(), NotChosen(Judgement(holds=False)), "CANCELED", "not_chosen", 0, "not_chosen"),
    "predicate failed": Row(
        *(attempt(), NotChosen(Judgement(holds=False, error=PredicateError("<odd>", "ValueError"))), "CANCELED"),
        *("predicate_failed", 0, "predicate_failed"),
        error="<odd>",
    ),
    "expired": Row(attempt(), Expired(), "CANCELED", "expired", 0, "expired"),
    "its signal did not come": Row(
        *(attempt(WAITS), NotSignaled(SignalTimeoutError("late")), "FAILED", "failed", 1, "signal_timeout"),
        error="<late>",
    ),
    "its signal did not come, and it waits again": Row(
        attempt(WAITS._replace(max_retries=RETRIES.max_retries, backoff=RETRIES.backoff)),
        *(NotSignaled(SignalTimeoutError("late")), "WAITING", "retried", 1),
        delay_us=4_000_000 + 60_000_000,
        error="<late>",
    ),
    "deferred": Row(attempt(), Deferred(1.5), "PENDING", "deferred", 0, delay_us=1_500_000),
    # ------------------------------------------------------------------ without an outcome
    "snoozed": Row(attempt(), Snoozed(2.5), "PENDING", "snoozed", 0, delay_us=2_500_000),
    "the body continues later": Row(
        attempt(), Directed(EndAttempt("advanced", delay_us=7)), "PENDING", "advanced", 0, delay_us=7
    ),
    "the body waits to be released": Row(
        attempt(), Directed(EndAttempt("advanced", delay_us=NEVER_DUE)), "PENDING", "advanced", 0, delay_us=NEVER_DUE
    ),
    "the body decides to succeed": Row(attempt(), Directed(EndAttempt("succeeded")), "SUCCEEDED", "succeeded", 1),
    "the body decides to fail": Row(
        attempt(),
        Directed(EndAttempt("failed", failure=Failure("<no>", "E"), reason="reject_limit")),
        *("FAILED", "failed", 1, "reject_limit"),
        error="<no>",
    ),
    "released": Row(attempt(attempts=1), Released(), "PENDING", "released", 1),
    "its process died": Row(attempt(), Died(LOST), "PENDING", "lost", 0, error=f"<{LOST}>"),
    "its process died within the budget": Row(attempt(crashes=2), Died(LOST), "PENDING", "lost", 0, error=f"<{LOST}>"),
    "its process died too often": Row(
        *(attempt(crashes=3), Died(LOST), "FAILED", "lost", 0, "worker_lost"),
        error=f"<the job's worker was lost 4 times; the last time {LOST}>",
    ),
    "its process died, without a budget": Row(
        *(attempt(), Died(LOST), "FAILED", "lost", 0, "worker_lost"),
        error=f"<the job's worker was lost 1 times; the last time {LOST}>",
        policies=under(crash_budget=0),
    ),
}


def test_the_table_has_every_ending():
    assert {type(row.ending) for row in ROWS.values()} == set(Ending.__args__)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_an_ending_under_a_policy_is_one_transition(row: Row):
    """J2.1, J2.5, J5.1: nothing is written or logged by the decision itself."""
    made = verdict(row.of, row.ending, row.policies)
    assert (made.job_id, made.fence, made.number) == ("0198", 7, row.of.claim.attempts + 1)
    assert (made.status, made.outcome, made.attempts) == (row.status, row.outcome, row.attempts)
    assert (made.reason, made.delay_us) == (row.reason, row.delay_us)
    assert (made.failure and made.failure.error) == row.error
    assert (made.failure.note if made.failure else "") == row.note


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_business_key_is_freed_by_what_ends_the_job(row: Row):
    """J1.5: and by nothing else."""
    holder = attempt(row.of.options, attempts=row.of.claim.attempts, crashes=row.of.claim.crash_count, key="order-1")
    assert verdict(holder, row.ending, row.policies).releases_business_key is (row.status not in ("PENDING", "WAITING"))
    assert not verdict(row.of, row.ending, row.policies).releases_business_key


def made_of(ending: Ending, lane: str | None = None) -> Transition:
    return verdict(attempt(lane=lane), ending, under())


def test_a_result_is_kept():
    assert made_of(Returned('{"a":1}')).result == '{"a":1}'


def test_the_traceback_of_a_body_is_kept_and_that_of_a_dead_process_is_not():
    """J5.3: the process cannot say where it was."""
    raised, died = made_of(Raised(KeyError("x"))).failure, made_of(Died(LOST)).failure
    assert (raised and raised.traceback, died and died.traceback) == ("Traceback", None)
    assert (raised and raised.error_class) == "KeyError"


@pytest.mark.parametrize("lane", [None, Lane(resource="stripe").text])
def test_a_job_not_known_here_waits_in_a_lane_for_nodes_that_know_it(lane: str | None):
    """J3.4: behind the same gates as before."""
    left = made_of(NotKnownHere("no such function"), lane=lane).lane
    assert left is not None
    assert "shop:charge" in left
    assert lane is None or "stripe" in left


def test_an_ending_on_which_no_verdict_can_be_passed_fails_the_job():
    """J5.1: an odd value of the body's own must not leave its job RUNNING for ever."""
    made = failed_for_good(attempt(RETRIES, key="order-1"), ValueError("odd"), under())
    assert (made.status, made.reason, made.attempts, made.releases_business_key) == ("FAILED", "non_retryable", 1, True)
    assert made.failure == described(ValueError("odd"))._replace(note="no verdict could be made on its outcome")
