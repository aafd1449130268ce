"""Waits for answers from outside: each is completed once, in time, by one of its senders, or it expires."""

from __future__ import annotations

from functools import partial
from typing import Final

from windlass.domain.execution import NewExecution
from windlass.domain.external_wait import Answer, AnsweredWait, AnswerFate, NewWait, WaitKey
from windlass.domain.identity import new_job_id
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import execution_submissions, executions, external_answers, external_waits
from windlass.stores.plans.execution_submissions import NewSubmission
from windlass.stores.plans.external_answers import StoredAnswers
from windlass.testing.contract.workbench import StoreContract, Workbench, at_once, new_job

MINUTE: Final = 60_000_000
STEP: Final = 0
TARGET: Final = "pipeline/orders@1#0123456789ab"


class ExternalWaitsContract(StoreContract):
    """What becomes of waits and their answers."""

    def test_parked_execution_is_due_at_its_deadline_and_at_once_when_answered(self, bench: Workbench) -> None:
        """P8.1: the main job holds the due time; the answer names the levels that have new work."""
        wait = parked(bench)
        assert bench.claim() == []
        (fates,), work = answer(bench, [to(wait, "1")])
        assert ([one.fate for one in fates], work) == ([AnswerFate.STORED], frozenset({("default", 2)}))
        assert [claim.job_id for claim in bench.claim()] == [wait.execution_id]

    def test_one_of_many_senders_is_first(self, bench: Workbench) -> None:
        """P8.2: the others get its answer."""
        wait = parked(bench)
        sent = [partial(answer, bench, [to(wait, str(number))]) for number in range(8)]
        found = [fates[0] for ((fates,), _) in at_once(*sent)]
        assert sorted(one.fate for one in found) == [AnswerFate.DUPLICATE] * 7 + [AnswerFate.STORED]
        (first,) = {one.value for one in found}
        assert answer(bench, [to(wait, "late")])[0] == [[AnsweredWait(AnswerFate.DUPLICATE, 0, first)]]

    def test_answer_before_the_park_is_kept(self, bench: Workbench) -> None:
        """P8.2: and the execution is due at once when it parks."""
        execution = submitted(bench)
        wait = wait_of(bench, execution)
        early = to(wait, "1")._replace(deadline=wait.deadline)
        assert answer(bench, [early])[0][0][0].fate is AnswerFate.EARLY
        park(bench, wait)
        assert [claim.job_id for claim in bench.claim()] == [execution]

    def test_answer_at_the_deadline_is_late(self, bench: Workbench) -> None:
        """P8.2: by the store's clock, whether or not the wait has expired yet."""
        wait = parked(bench)
        bench.clock.advance(60)
        for _ in range(2):
            assert answer(bench, [to(wait, "1")])[0][0][0].fate is AnswerFate.LATE
            assert bench.database.run(external_waits.expire, [wait.key]) == {wait.key}

    def test_completed_wait_does_not_expire(self, bench: Workbench) -> None:
        """P8.2: one of both wins."""
        wait = parked(bench)
        answer(bench, [to(wait, "1")])
        bench.clock.advance(61)
        assert bench.database.run(external_waits.expire, [wait.key]) == frozenset()

    def test_answers_of_a_call_are_stored_all_or_none(self, bench: Workbench) -> None:
        """P8.1: calls that share a transaction do not depend on each other."""
        first, second = parked(bench), parked(bench)
        unknown = to(first, "1")._replace(key=WaitKey(new_job_id(), STEP, "", 1))
        refused, stored = answer(bench, [to(first, "1"), unknown], [to(second, "2")])[0]
        assert [one.fate for one in refused] == [AnswerFate.STORED, AnswerFate.UNKNOWN]
        assert [one.fate for one in stored] == [AnswerFate.STORED]
        assert [claim.job_id for claim in bench.claim()] == [second.execution_id]

    def test_closed_wait_takes_no_answer(self, bench: Workbench) -> None:
        """P8.1: its execution has ended, or asks again in another round."""
        wait = parked(bench)
        bench.database.run(external_waits.close, [wait.execution_id])
        assert answer(bench, [to(wait, "1")])[0][0][0].fate is AnswerFate.ENDED

    def test_callers_that_need_a_key_at_once_make_one(self, bench: Workbench) -> None:
        """P8.1: all of them read the same."""
        made = at_once(*(partial(bench.database.run, external_waits.make_secret, f"secret {n}") for n in range(4)))
        assert len({rows[0] for rows in made}) == 1
        assert bench.database.read(external_waits.secrets) == made[0]


def submitted(bench: Workbench) -> str:
    """Store an execution whose first step waits outside; return its id."""
    key = new_job_id()
    names = ("default", "orders", "1", "0" * 64, None, "0" * 64, 1)
    new = NewSubmission(NewExecution(key, *names, awaits=1), new_job(id=key, target=TARGET))
    bench.database.run(execution_submissions.submit, [new], ["default"])
    return key


def wait_of(bench: Workbench, execution: str) -> NewWait:
    """Return a wait of one minute."""
    return NewWait(execution, STEP, "", 1, "default", "orders", execution, "[[1],{}]", bench.clock.micros() + MINUTE, 0)


def park(bench: Workbench, wait: NewWait) -> None:
    """Have an execution wait, as the end of its claim does."""
    bench.database.run(_park, wait)


def _park(dialect: Dialect, wait: NewWait) -> Plan[None]:
    yield from executions.lock_mains(dialect, [wait.execution_id])
    yield from external_waits.open_waits(dialect, [wait])
    yield from external_waits.park_values(dialect, [wait.execution_id])


def parked(bench: Workbench) -> NewWait:
    """Return the wait of a new execution."""
    wait = wait_of(bench, submitted(bench))
    park(bench, wait)
    return wait


def to(wait: NewWait, value: str) -> Answer:
    """Return an answer to a wait."""
    return Answer(wait.key, 0, value, "ops", None, MINUTE)


def answer(bench: Workbench, *calls: list[Answer]) -> StoredAnswers:
    """Store the answers of some calls; return what became of them, and the levels that have new work."""
    return bench.database.run(external_answers.complete, calls)
