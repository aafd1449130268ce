"""Dead letters and alerts: written with the failure, and moved with their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from windlass.client.dead_letter_views import alert_of
from windlass.domain.dead_letter import Alert, DeadLetter
from windlass.domain.ended import Ended
from windlass.domain.job import Claim
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, dead_letter
from windlass.failure.dead_letter_records import letter_of
from windlass.failure.dead_letters import DeadLetterFollowUp as Writer
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import alerts, archive, cluster, dead_letters, jobs, moves, triage
from windlass.testing.contract.workbench import FAILURE, NODE, SECOND, StopError, StoreContract, Workbench, at_once

S = JobStatus
HOUR = 3600
DAY = 86_400
RACERS = 4
ANY = triage.LetterFilters()


class DeadLettersContract(StoreContract):
    """What is stored for jobs that failed for good."""

    # ------------------------------------------------------------------ written with the failure

    def test_a_dead_letter_and_the_state_are_written_together(self, bench: Workbench) -> None:
        """J5.4, C6: both are there or neither is, and the alert with them."""
        claim = bench.claimed_job(correlation_id="c1", idempotency_key="i1", queue="pay")
        with pytest.raises(StopError):
            fail_for_good(bench, [claim], stops=True)
        assert bench.job(claim.job_id).status is S.RUNNING
        assert (letters(bench), raised(bench)) == ([], [])
        fail_for_good(bench, [claim])
        assert bench.job(claim.job_id).status is S.FAILED
        (letter,), (alert,) = letters(bench), raised(bench)
        assert (letter.execution_id, letter.execution_key, letter.correlation_id) == (claim.job_id, "i1", "c1")
        assert letter.transition_key == f"{claim.job_id}:0:1"
        assert (letter.error_code, letter.error_message, letter.traceback) == (
            FAILURE.error_class,
            FAILURE.error,
            FAILURE.traceback,
        )
        assert letter.created_at == bench.clock.now()
        assert (alert.error_hash, alert.count, str(alert.first_job_id)) == (letter.fingerprint, 1, claim.job_id)

    def test_jobs_of_a_lost_node_get_dead_letters_when_their_crash_budget_is_spent(self, bench: Workbench) -> None:
        """J5.4, J7.4: in the transaction of the recovery, also without an attempt of its own."""
        bench.register("web-2-77-abcd")
        (job,) = bench.put()
        assert len(bench.claim(node="web-2-77-abcd")) == 1
        bench.lose("web-2-77-abcd", alive=[NODE])
        bench.database.run(cluster.recover, 0, [FollowUp(frozenset({Move.FAIL}), lambda _: True, WRITER.follow)])
        (letter,) = letters(bench)
        assert (str(letter.job_id), letter.terminal_reason, letter.host) == (job, "worker_lost", "web-2")
        assert (letter.retryable, letter.retries_observed) == (True, 0)

    def test_a_job_that_fails_again_has_one_dead_letter(self, bench: Workbench) -> None:
        """J5.4: the latest one, even if it was revived by a version without dead letters."""
        claim = bench.claimed_job()
        fail_for_good(bench, [claim])
        bench.database.run(of_old, claim.job_id, "revive", "forget_ended")
        (again,) = bench.claim()
        fail_for_good(bench, [again], Failure("KeyError: 'x'", "KeyError"))
        (letter,) = letters(bench)
        assert letter.error_code == "KeyError"

    # ------------------------------------------------------------------ alerts

    def test_within_the_hour_an_alert_only_counts(self, bench: Workbench) -> None:
        """J5.4: of the same target and shape of error; an hour after the first, another is raised."""
        first, second, other, late = (bench.claimed_job() for _ in range(4))
        assert fail_for_good(bench, [first]) == {first.job_id}
        bench.clock.advance(HOUR - 0.000_001)
        assert fail_for_good(bench, [second]) == frozenset()
        assert fail_for_good(bench, [other], Failure("KeyError: 'x'", "KeyError")) == {other.job_id}
        bench.clock.advance(0.000_001)
        assert fail_for_good(bench, [late]) == {late.job_id}
        newest, _, oldest = raised(bench)
        assert (newest.count, str(newest.first_job_id), str(newest.last_job_id)) == (1, late.job_id, late.job_id)
        assert (oldest.count, str(oldest.first_job_id), str(oldest.last_job_id)) == (2, first.job_id, second.job_id)
        assert oldest.last_at > oldest.first_at

    def test_two_nodes_that_fail_at_once_raise_one_alert_and_lose_no_count(self, bench: Workbench) -> None:
        """J5.4: of several fingerprints, in any order."""
        claims = [bench.claimed_job() for _ in range(8 * RACERS)]
        shapes = [Failure("ValueError: a", "ValueError"), Failure("ValueError: b", "ValueError")]

        def fail(number: int) -> list[frozenset[str]]:
            mine = claims[number::RACERS]
            order = shapes if number % 2 else shapes[::-1]
            return [fail_for_good(bench, mine[at : at + 4], *order) for at in range(0, len(mine), 4)]

        answers = at_once(*[partial(fail, number) for number in range(RACERS)])
        assert len([job for answer in answers for batch in answer for job in batch]) == len(shapes)
        assert sorted(alert.count for alert in raised(bench)) == [4 * RACERS, 4 * RACERS]
        assert [group.size for group in groups(bench)] == [4 * RACERS, 4 * RACERS]

    # ------------------------------------------------------------------ moved with their jobs

    def test_a_revived_job_is_no_dead_letter(self, bench: Workbench) -> None:
        """J2.4, J5.7: its row and its count go with the retry; its alert stays."""
        claim = bench.claimed_job()
        fail_for_good(bench, [claim])
        bench.database.run(moves.retry, [claim.job_id])
        assert (letters(bench), groups(bench), len(raised(bench))) == ([], [], 1)

    def test_a_paused_dead_letter_is_hidden_until_it_is_resumed(self, bench: Workbench) -> None:
        """J2.3: not listed, not counted, not re-driven, not purged; resumed it is as before, canceled it is gone."""
        kept, other = bench.claimed_job(), bench.claimed_job()
        fail_for_good(bench, [kept, other])
        before = letters(bench, kept.job_id)
        for _ in range(2):  # pausing twice hides it once
            bench.database.run(moves.pause, [kept.job_id])
        assert [str(letter.job_id) for letter in letters(bench)] == [other.job_id]
        assert [group.size for group in groups(bench)] == [1]
        assert bench.database.read(triage.load, [kept.job_id]) == []
        bench.clock.advance(100 * DAY)
        assert bench.database.run(dead_letters.purge, DAY * SECOND, 10).jobs == 1
        assert (groups(bench), bench.job(kept.job_id).status) == ([], S.PAUSED)
        bench.database.run(moves.resume, [kept.job_id])
        assert letters(bench) == before
        ((sample, size),) = [(group.sample, group.size) for group in groups(bench)]
        assert (sample, size) == (FAILURE.error, 1)
        fail_for_good(bench, [bench.claimed_job()])
        bench.database.run(moves.pause, [kept.job_id])
        bench.database.run(moves.cancel, [kept.job_id])
        assert (len(letters(bench)), rows(bench, "dead_letter"), [group.size for group in groups(bench)]) == (1, 1, [1])

    def test_an_archived_dead_letter_is_listed_as_before(self, bench: Workbench) -> None:
        """J7.7: with its envelope."""
        old, new = bench.claimed_job(), bench.claimed_job()
        fail_for_good(bench, [old, new])
        before = letters(bench)
        bench.database.run(archive.move, [new.job_id])
        assert letters(bench) == before
        assert [group.size for group in groups(bench)] == [2]


WRITER = Writer("contract", "here", HOUR * SECOND)


def fail_for_good(
    bench: Workbench, claims: Sequence[Claim], *failures: Failure, stops: bool = False, reason: str = "retry_exhausted"
) -> frozenset[str]:
    """Fail claims for good, as the completer does; return the jobs that raised an alert."""
    errors = failures or (FAILURE,)
    pairs = [(claim, errors[number % len(errors)]) for number, claim in enumerate(claims)]

    def plan(dialect: Dialect) -> Plan[frozenset[str]]:
        ends = [dead_letter(claim, bench.times(), failure, reason, holds_key=True) for claim, failure in pairs]
        assert all((yield from jobs.apply(dialect, ends, alone=False)))
        effects = yield from WRITER.follow(dialect, [failed(claim, failure, reason) for claim, failure in pairs])
        if stops:
            raise StopError
        return effects.alerts

    return bench.database.run(plan)


def failed(claim: Claim, failure: Failure, reason: str = "retry_exhausted") -> Ended:
    """Return a claimed job that fails for good."""
    facts = (claim.job_id, claim.target, claim.queue, claim.priority)
    return Ended(*facts, Move.FAIL, number=claim.attempts + 1, attempts=1, reason=reason, failure=failure)


def letters(bench: Workbench, *ids: str) -> list[DeadLetter]:
    """Return all dead letters, or these of them."""
    found, _ = bench.database.read(triage.page, ANY, None, 100)
    return [letter_of(row) for row in found if not ids or row[0] in ids]


def raised(bench: Workbench) -> list[Alert]:
    """Return all alerts, latest first."""
    found, _ = bench.database.read(alerts.find, alerts.AlertFilters(), None, 100)
    return [alert_of(row) for row in found]


def groups(bench: Workbench, filters: triage.LetterFilters = ANY) -> list[triage.LetterGroup]:
    """Return all matching groups."""
    return bench.database.read(triage.groups, filters, 100)


def rows(bench: Workbench, table: str) -> int:
    """Return how many rows a table has: as many as an update without effect changes."""
    hit: Any = bench.database.run(_script, _CHANGES_OF_NOTHING[table])
    return int(hit[0])


_CHANGES_OF_NOTHING = {
    "alert": "UPDATE windlass_alert SET id = id",
    "archive": "UPDATE windlass_archive SET id = id",
    "attempt": "UPDATE windlass_attempt SET job_id = job_id",
    "audit": "UPDATE windlass_audit SET id = id",
    "dead_letter": "UPDATE windlass_dead_letter SET job_id = job_id",
    "dead_letter_group": "UPDATE windlass_dead_letter_group SET fingerprint = fingerprint",
    "done": "UPDATE windlass_done SET id = id",
    "flow": "UPDATE windlass_flow SET job_id = job_id",
    "group": "UPDATE windlass_group SET id = id",
    "group_delta": "UPDATE windlass_group_delta SET group_id = group_id",
    "job": "UPDATE windlass_job SET id = id",
    "job_log": "UPDATE windlass_job_log SET job_id = job_id",
    "job_tag": "UPDATE windlass_job_tag SET tag = tag",
    "progress": "UPDATE windlass_progress SET job_id = job_id",
}


def _script(dialect: Dialect, text: str) -> Plan[Any]:
    del dialect
    return (yield Step(SCRIPT, {"text": text}))


def of_old(dialect: Dialect, job_id: str, *steps: str) -> Plan[None]:
    """Do what a verb did before there were dead letters."""
    for step in steps:
        yield Step(step, {"ids": dialect.ids([job_id])})
