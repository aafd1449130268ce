"""Dead letters and alerts, stored by the transaction in which a job or an execution fails for good.

Either both are committed or neither is: there is no FAILED job without its dead letter, and no dead letter of a live
job. Jobs that run items of executions have none, nor have executions that were declared without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.clock import MICROSECONDS
from windlass.domain.dead_letter import EXECUTION, JOB, PLATFORM, TENANT, about
from windlass.domain.deliveries import DEAD_LETTER
from windlass.domain.ended import Effects, Ended
from windlass.domain.execution import PREFIX, FailedStep, is_execution, is_part
from windlass.domain.identity import host_of
from windlass.domain.keys import error_fingerprint
from windlass.domain.states import Move
from windlass.domain.transition import NO_FAILURE
from windlass.domain.transition_keys import transition_key
from windlass.failure.dead_letter_records import letter_of, text_of
from windlass.feature import Feature
from windlass.purge_duty import purge_duties
from windlass.settings import DeadLettersSettings
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import dead_letters, execution_reads, outbox, triage
from windlass.stores.plans.dead_letters import Envelope, Letter
from windlass.stores.plans.execution_reads import ExecutionFacts
from windlass.stores.plans.outbox import OutboxRow

DEAD_LETTERS: Final = "dead letters"
"""The destination of dead letters in the outbox, whatever the provider is."""
LONGEST_NAME: Final = 500
"""Length in characters to which a target or error class is indexed: an index accepts no more."""


def feature(
    transport: str, host: str, settings: DeadLettersSettings, wake_relay: Callable[[], None] | None = None
) -> Feature:
    """Return the dead letters of an application and its nodes; `transport` is the dialect, `host` this machine.

    With `wake_relay` they are also put into the outbox, for a foreign provider, and it is called after the commit.
    """
    window_us = int(settings.alert_window * MICROSECONDS)
    letters = DeadLetterFollowUp(transport, host, window_us, wake_relay)
    follow_up = FollowUp(frozenset({Move.FAIL, Move.GIVE_UP}), _has_letter, letters.follow)
    purge = purge_duties("dead letters", dead_letters.purge, settings.retention, settings.purge_cron)
    return Feature("dead letters", (follow_up,), purge)


def _has_letter(ended: Ended) -> bool:
    """Return whether a job may get a dead letter; one that runs items of an execution fails the execution instead."""
    return not is_part(ended.target)


class _Subject(NamedTuple):
    """What a dead letter is about: a job, or an execution at the step that failed."""

    name: str
    """The target of a job, the name of a pipeline."""
    shape: str
    """What its fingerprint counts besides the error."""
    transition_key: str
    retries: int
    kind: str = JOB
    tenant: str = TENANT
    key: str | None = None
    definition_hash: str | None = None


class DeadLetterFollowUp:
    """The follow-up that turns jobs and executions that fail for good into dead letters and alerts."""

    def __init__(
        self, transport: str, host: str, alert_window_us: int, wake_relay: Callable[[], None] | None = None
    ) -> None:
        self._transport = transport
        self._host = host
        self._window_us = alert_window_us
        self._wake_relay = wake_relay

    def follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        """Store the dead letters of failed jobs, in the transaction in which they fail."""
        executions = [job.job_id for job in ended if is_execution(job.target)]
        facts = (yield from execution_reads.facts(dialect, executions)) if executions else {}
        silent = {execution.id for execution in facts.values() if not execution.dlq}
        letters = [
            self._letter(job, _job(job) if (execution := facts.get(job.job_id)) is None else _execution(job, execution))
            for job in ended
            if job.job_id not in silent
        ]
        if not letters:
            return Effects(fingerprints=dict.fromkeys(silent))
        alerts = yield from dead_letters.store_letters(dialect, letters, self._window_us)
        counted = {letter.job_id: letter.fingerprint for letter in letters if letter.kind == EXECUTION}
        calls = (yield from self._pass_on(dialect, letters)) if self._wake_relay is not None else ()
        return Effects(alerts=alerts, fingerprints={**counted, **dict.fromkeys(silent)}, calls=calls)

    def _pass_on(self, dialect: Dialect, letters: Sequence[Letter]) -> Plan[tuple[Callable[[], None], ...]]:
        """Put dead letters that were just stored into the outbox; return what is called after the commit."""
        rows = yield from triage.load(dialect, [letter.job_id for letter in letters])
        yield from outbox.store(dialect, [_outgoing(row) for row in rows])
        return () if self._wake_relay is None else (self._wake_relay,)

    def _letter(self, job: Ended, subject: _Subject) -> Letter:
        failure, reason = job.failure or NO_FAILURE, job.reason or ""
        envelope = Envelope(
            transition_key=subject.transition_key,
            transport=self._transport,
            platform=PLATFORM,
            host=self._host if job.node is None else host_of(job.node),
            error_message=failure.error,
            retryable=about(reason).retryable,
            retries_observed=max(subject.retries, 0),
            traceback=failure.traceback,
            definition_hash=subject.definition_hash,
        )
        return Letter(
            job.job_id,
            error_fingerprint(subject.shape, failure.error_class, failure.error),
            subject.name[:LONGEST_NAME],
            job.queue,
            failure.error_class[:LONGEST_NAME],
            reason,
            dead_letters.packed(envelope),
            failure.error,
            subject.kind,
            subject.tenant,
            subject.key,
        )


def _job(job: Ended) -> _Subject:
    return _Subject(job.target, job.target, f"{job.job_id}:0:{job.number}", job.attempts - 1)


def _execution(job: Ended, facts: ExecutionFacts) -> _Subject:
    """Return the step that its claim has failed at; where it ended without one, the step it was at."""
    step, attempt, key = facts.cursor, facts.attempt, transition_key(facts.id, facts.cursor, facts.attempt)
    if isinstance(job.cargo, FailedStep):
        step, attempt, key = job.cargo.log.step, job.cargo.log.attempt, job.cargo.transition_key
    shape = f"{PREFIX}{facts.pipeline}/{step}"
    more = (facts.tenant, facts.key, facts.definition_hash)
    return _Subject(facts.pipeline, shape, key, attempt - 1, EXECUTION, *more)


def _outgoing(row: Sequence[Any]) -> OutboxRow:
    """Return a row of `get_letters` as the outbox has it: one job may die more than once, each time at another time."""
    letter = letter_of(row)
    about, tenant = f"{letter.transition_key}@{row[2]}", letter.tenant_id
    return OutboxRow(
        DEAD_LETTER, about, DEAD_LETTERS, letter.resource_name, tenant, letter.correlation_id, text_of(letter)
    )
