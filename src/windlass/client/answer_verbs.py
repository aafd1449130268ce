"""The verbs that answer waiting steps: what an answer is addressed to, and the commit that concurrent calls share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.client.job_verbs import JobVerbs
from windlass.client.redrive_order import process_owner
from windlass.domain import interaction_tokens
from windlass.domain.clock import MICROSECONDS, from_micros
from windlass.domain.external_wait import (
    ACCEPTED,
    Answer,
    AnsweredWait,
    AnswerFate,
    Completion,
    WaitKey,
    read_interaction_id,
)
from windlass.errors import ConfigurationError, InvalidOptionError, SerializationError, WindlassError
from windlass.execution_errors import AwaitTimeoutError, ExecutionStateError, WaitNotFoundError
from windlass.pipelines.answer_values import encoded_answer
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.definition import StepKind
from windlass.pipelines.pipeline import AppPipeline
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb
from windlass.stores.plans import external_answers, external_waits
from windlass.stores.plans.external_answers import AnsweringCall
from windlass.stores.plans.external_waits import AwaitedExecution
from windlass.submission.caller_group import CallerGroups
from windlass.submission.error_text import short
from windlass.submission.group_commit import GroupCommit

MOST_ANSWERS: Final = 5_000


class AddressedAnswer(NamedTuple):
    """An answer, and what it is addressed to."""

    key: WaitKey
    value: Any
    tenant: str | None
    """None: a token says enough."""
    deadline: int | None = None
    """Deadline in the token."""


class AnswerVerbs:
    """Answers waiting steps of one application's pipelines."""

    def __init__(self, jobs: JobVerbs, declared: DeclaredPipelines, commits: GroupCommit) -> None:
        self._jobs = jobs
        self._declared = declared
        self._commits = commits
        self._callers = CallerGroups[AnsweringCall, list[AnsweredWait]](self._commit)

    # ------------------------------------------------------------------ addresses

    def of_token(self, token: object, value: Any) -> Verb[AddressedAnswer]:
        """Return an answer that a token lets its bearer give."""
        yield from self._jobs.access.ready()
        content = yield from self._declared.tokens.verified(self._jobs.access.database, token)
        return AddressedAnswer(content.key, value, None, content.deadline)

    def of_interaction(self, interaction_id: object, value: Any, tenant: str) -> AddressedAnswer:
        """Return an answer to an interaction."""
        key = read_interaction_id(interaction_id) if isinstance(interaction_id, str) else None
        if key is None:
            raise InvalidOptionError(
                "interaction_id must be what ctx.interaction_id or app.executions.pending() gave, like "
                f"<execution id>:<step>[:<item>], got {_shown(interaction_id)}"
            )
        return AddressedAnswer(key, value, tenant)

    def of_correlation(self, correlation_id: str, value: Any, tenant: str) -> Verb[AddressedAnswer]:
        """Return an answer to the only wait with a correlation id."""
        if interaction_tokens.read(correlation_id) is not None:
            raise InvalidOptionError(f"correlation_id must be that of an execution, got {_shown(correlation_id)}")
        found = yield from self._jobs.access.read(external_waits.of_correlation, tenant, correlation_id)
        if not found:
            raise WaitNotFoundError(f"correlation id {correlation_id!r}", tenant)
        if len(found) > 1:
            raise InvalidOptionError(
                f"correlation_id {correlation_id!r} is ambiguous: several steps or items with it wait, or have been "
                "answered; pass interaction_id=... or a token, which name one of them"
            )
        return AddressedAnswer(found[0], value, tenant)

    # ------------------------------------------------------------------ answers

    def complete(self, given: Sequence[AddressedAnswer]) -> Verb[list[Completion]]:
        """Store answers, all or none; each is checked before anything is stored."""
        access, authorization = self._jobs.access, self._jobs.authorization
        ids = sorted({one.key.execution_id for one in given})
        for execution_id in ids:
            yield from authorization.check("complete", execution_id)
        found = yield from access.read(external_waits.executions_of, ids)
        by, several = authorization.name() or process_owner(), len(given) > 1
        answers: list[Answer] = []
        pipelines: list[AppPipeline] = []
        for position, one in enumerate(given):
            try:
                pipeline, answer = self._checked(one, found.get(one.key.execution_id), by)
            except WindlassError as error:
                if not several:
                    raise
                raise with_position(error, position, len(given)) from None
            answers.append(answer)
            pipelines.append(pipeline)
        answered = yield from self._callers.submit(answers)
        for position, (one, fate) in enumerate(zip(given, answered, strict=True)):
            if fate.fate not in ACCEPTED:
                raise _refusal(one, fate.fate, f"answer {position} of {len(given)}: " if several else "")
        if self._jobs.inline is not None:
            yield self._jobs.inline.run, self._jobs.inline.arun, ()
        return [_completion(*both) for both in zip(pipelines, answers, answered, strict=True)]

    def _checked(
        self, given: AddressedAnswer, execution: AwaitedExecution | None, by: str
    ) -> tuple[AppPipeline, Answer]:
        key = given.key
        if execution is None or given.tenant not in (None, execution.tenant):
            raise WaitNotFoundError(f"interaction {key.interaction_id}", given.tenant or "of the token")
        pipeline = self._declared.get(execution.pipeline, execution.pipeline_version)
        if pipeline is None or pipeline.definition.hash != execution.definition_hash:
            raise ConfigurationError(
                f"pipeline {execution.pipeline}@{execution.pipeline_version} is not declared in this application with "
                f"the steps of execution {execution.id}, so its answer cannot be checked; answer where it is"
            )
        steps = pipeline.definition.steps
        if key.step >= len(steps) or steps[key.step].kind is not StepKind.AWAIT:
            raise WaitNotFoundError(f"interaction {key.interaction_id}", execution.tenant)
        step = steps[key.step]
        number, text = encoded_answer(pipeline.definition, pipeline.values, step, given.value)
        return pipeline, Answer(key, number, text, by, given.deadline, int(step.wait * MICROSECONDS))

    def _commit(self, calls: Sequence[AnsweringCall]) -> Verb[list[list[AnsweredWait]]]:
        """Store the answers of several calls in one transaction, and wake what waited for them."""
        stored = yield from self._jobs.access.run(external_answers.complete, calls)
        reached("answer.after_commit")
        if stored.work:
            self._jobs.publisher.wakeups.new_work(stored.work)
            yield from self._commits.notify(sorted(stored.work))
        return stored.calls


def _shown(given: object) -> str:
    """Return a wrong id for an error, which never has a token in it."""
    if isinstance(given, str) and given.startswith(f"{interaction_tokens.PREFIX}."):
        return (
            "a token, which is not shown here; pass it as the first argument, or on the command line with --token-stdin"
        )
    return short(given)


def with_position(error: WindlassError, position: int, number: int) -> WindlassError:
    """Return the error of one of several answers with its position."""
    error.args = (f"answer {position} of {number}, none of which is stored: {error}",)
    return error


def _completion(pipeline: AppPipeline, answer: Answer, answered: AnsweredWait) -> Completion:
    held: Any = answered.value
    if answered.value is not None:
        # That of another sender may be damaged, or of another version: these answers are stored all the same.
        with suppress(SerializationError, IndexError):
            held = pipeline.values.decode(answered.type or 0, answered.value)
    return Completion(
        interaction_id=answer.key.interaction_id,
        execution_id=UUID(answer.key.execution_id),
        duplicate=answered.fate is AnswerFate.DUPLICATE,
        answer=held,
    )


def _refusal(given: AddressedAnswer, fate: AnswerFate, prefix: str) -> Exception:
    interaction = given.key.interaction_id
    what = f"{prefix}interaction {interaction}"
    nothing = "; none of these answers is stored" if prefix else ""
    if fate is AnswerFate.LATE:
        until = "" if given.deadline is None else f", {from_micros(given.deadline):%Y-%m-%d %H:%M:%S} UTC"
        return AwaitTimeoutError(f"{what}: its deadline has passed{until}, so it takes no answer any more{nothing}")
    if fate is AnswerFate.ENDED:
        return ExecutionStateError(
            f"{what}: its execution has ended, or has started over and waits under another interaction id{nothing}"
        )
    return WaitNotFoundError(what, given.tenant or "of the token")
