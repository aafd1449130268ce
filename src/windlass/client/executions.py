"""`app.executions`: find, get, steer and re-drive executions of pipelines."""

from __future__ import annotations

from typing import Final, TypedDict, Unpack
from uuid import UUID

from windlass.client.execution_reports import DEFAULT_TENANT
from windlass.client.execution_views import status_of
from windlass.client.external_wait_verbs import ExternalWaits
from windlass.client.filters import Page, checked_limit
from windlass.client.rewinds import RedrivePlan, choose_rewind, plan_of, reached_by_items
from windlass.domain.ended import NO_EFFECTS
from windlass.domain.execution import Execution, ExecutionStatus, ExecutionTransition
from windlass.domain.identity import LAST_ID, parse_job_id
from windlass.domain.keys import check_key
from windlass.errors import InvalidOptionError
from windlass.execution_errors import ExecutionStateError
from windlass.pipelines.claimed_execution import lane_of
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.pipelines.pipeline import checked_names
from windlass.pipelines.step_types import type_name
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import execution_progress, execution_reads, execution_redrives
from windlass.stores.plans.execution_redrives import EVERY_STEP, OtherVersion

MOST_READ: Final = 5_000
"""Number of executions that one page reads at most: where few of many match, it may hold fewer than asked."""


class RedriveOptionsDict(TypedDict, total=False):
    """The options of `redrive`."""

    tenant: str | None
    reset_attempts: bool
    from_step: int | str | None
    to_version: str | None


class Executions(ExternalWaits):
    """Executions of the pipelines of an application. Every read is of one tenant."""

    # ------------------------------------------------------------------ looking

    def get(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> Execution:
        """Return one execution as it is now; `ExecutionNotFoundError` if the tenant has none of this id."""
        return drive(self._verbs.get(execution_id, check_key(tenant, "tenant")))

    async def aget(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> Execution:
        """Async twin of `get`."""
        return await adrive(self._verbs.get(execution_id, check_key(tenant, "tenant")))

    def handle(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> ExecutionHandle:
        """Return a handle on an execution stored earlier, perhaps by another process."""
        return ExecutionHandle(parse_job_id(execution_id), check_key(tenant, "tenant"), self._verbs)

    def find(
        self,
        tenant: str = DEFAULT_TENANT,
        *,
        pipeline: str | None = None,
        status: ExecutionStatus | str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Execution]:
        """Return executions of a tenant, newest first; where few of many match, a page may hold fewer than `limit`."""
        return drive(self._find(tenant, pipeline, status, cursor, limit))

    async def afind(
        self,
        tenant: str = DEFAULT_TENANT,
        *,
        pipeline: str | None = None,
        status: ExecutionStatus | str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Execution]:
        """Async twin of `find`."""
        return await adrive(self._find(tenant, pipeline, status, cursor, limit))

    def _find(
        self, tenant: str, pipeline: str | None, status: object, cursor: str | None, limit: int
    ) -> Verb[Page[Execution]]:
        wanted, most = checked_status(status), checked_limit(limit)
        check_key(tenant, "tenant")
        if pipeline is not None:
            check_key(pipeline, "pipeline")
        before = LAST_ID if cursor is None else parse_job_id(cursor)
        yield from self._verbs.jobs.authorization.check("executions")
        found: list[Execution] = []
        read = 0
        while len(found) < most and read < MOST_READ:
            page = yield from self._verbs.jobs.access.read(execution_reads.find, tenant, pipeline, before, most)
            read += len(page)
            for one in page:
                before = one.stored.id
                if wanted is None or status_of(one) is wanted:
                    found.append(self._verbs.reader.execution(one))
                    if len(found) == most:
                        break
            if len(page) < most and len(found) < most:
                return Page(found)
        return Page(found, before)

    def stranded(self, *, pipeline: str | None = None, limit: int = 100) -> list[Execution]:
        """Return open executions, of all tenants, whose version is declared here with other steps."""
        return drive(self._stranded(pipeline, limit))

    async def astranded(self, *, pipeline: str | None = None, limit: int = 100) -> list[Execution]:
        """Async twin of `stranded`."""
        return await adrive(self._stranded(pipeline, limit))

    def _stranded(self, pipeline: str | None, limit: int) -> Verb[list[Execution]]:
        most = checked_limit(limit)
        yield from self._verbs.jobs.authorization.check("executions")
        found: list[Execution] = []
        for definition in self._declared.register_all():
            if pipeline not in (None, definition.name):
                continue
            wanted = (definition.name, definition.version, definition.hash, most)
            rows = yield from self._verbs.jobs.access.read(execution_reads.stranded, *wanted)
            found += [self._verbs.reader.execution(one) for one in rows]
        return found[:most]

    def history(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> list[ExecutionTransition]:
        """Return the log of an execution: every transition, oldest first."""
        return drive(self._history(execution_id, tenant))

    async def ahistory(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> list[ExecutionTransition]:
        """Async twin of `history`."""
        return await adrive(self._history(execution_id, tenant))

    def _history(self, execution_id: UUID | str, tenant: str) -> Verb[list[ExecutionTransition]]:
        found = yield from self._checked("history", execution_id, tenant)
        key = found.stored.id
        rows = yield from self._log(key)
        return [self._verbs.reader.transition(found.stored, row) for row in rows]

    # ------------------------------------------------------------------ re-driving

    def redrive(
        self,
        execution_id: UUID | str,
        expected_version: int | None = None,
        note: str = "",
        **options: Unpack[RedriveOptionsDict],
    ) -> Execution:
        """Start a dead execution over, under its id: from where it failed, or from an earlier step.

        `expected_version` is the `row_version` that you have seen: if it has changed, that is a `StaleVersionError`.
        Options: `tenant`; `reset_attempts` (True); `from_step`, a step or its index; `to_version`, which moves it to
        another version of its pipeline if the steps before its cursor are equal. An execution that is stranded by
        changed steps may be moved while it is open.
        """
        return drive(self._redrive(execution_id, expected_version, note, options))

    async def aredrive(
        self,
        execution_id: UUID | str,
        expected_version: int | None = None,
        note: str = "",
        **options: Unpack[RedriveOptionsDict],
    ) -> Execution:
        """Async twin of `redrive`."""
        return await adrive(self._redrive(execution_id, expected_version, note, options))

    def _redrive(
        self, execution_id: UUID | str, expected: int | None, note: str, options: RedriveOptionsDict
    ) -> Verb[Execution]:
        given = checked_names(options, RedriveOptionsDict, "redrive")
        reset = given.get("reset_attempts", True)
        _check_redrive(expected, note, reset)
        key, jobs, tenant = parse_job_id(execution_id), self._verbs.jobs, given.get("tenant")
        yield from jobs.authorization.check("redrive", key)
        found = yield from self._verbs.found(key, tenant)
        rewind = moved = None
        if (from_step := given.get("from_step")) is not None:
            log = yield from self._log(key)
            rewind = choose_rewind(self._declared, found.stored, log, from_step)
        if (to_version := given.get("to_version")) is not None:
            moved = self._other_version(found.stored, to_version)
        plan = (key, tenant, expected, rewind, moved, jobs.follow_ups)
        started = yield from jobs.access.run(execution_redrives.redrive, *plan, reset=reset, note=note)
        reached("redrive.after_commit")
        if started.ended or started.effects is not NO_EFFECTS:
            yield from jobs.publish(started)
        return (yield from self._verbs.get(key, None))

    def _other_version(self, stored: execution_reads.StoredExecution, version: str) -> OtherVersion:
        pipeline = self._declared.get(stored.pipeline, version)
        if pipeline is None:
            raise InvalidOptionError(
                f"to_version: pipeline {stored.pipeline}@{version} is not declared in this application"
            )
        definition = pipeline.definition
        before = self._declared.get(stored.pipeline, stored.pipeline_version)
        if stored.cursor >= len(definition.steps):
            raise ExecutionStateError(
                f"execution {stored.id} has passed step {stored.cursor}, and {definition.name}@{version} has "
                f"{len(definition.steps)} steps"
            )
        reached = EVERY_STEP
        if before is not None and before.definition.hash == stored.definition_hash:
            reached = reached_by_items(before.definition, stored.cursor)
            ours = [_outline(step) for step in before.definition.steps[: stored.cursor]]
            theirs = [_outline(step) for step in definition.steps[: stored.cursor]]
            if ours != theirs:
                raise ExecutionStateError(
                    f"execution {stored.id} is at step {stored.cursor}, and the steps before it differ in version "
                    f"{version}: {ours} and {theirs}; re-drive it from step 0, or submit it anew"
                )
        lane = lane_of(definition, stored.cursor, stored.tenant) or None
        return OtherVersion(version, definition.hash, definition.target, lane, int(definition.awaits), reached)

    def plan_redrive(
        self, execution_id: UUID | str, tenant: str | None = None, *, from_step: int | str | None = None
    ) -> RedrivePlan:
        """Return what a re-drive would call again, with effect keys; nothing is changed."""
        return drive(self._plan_redrive(execution_id, tenant, from_step))

    async def aplan_redrive(
        self, execution_id: UUID | str, tenant: str | None = None, *, from_step: int | str | None = None
    ) -> RedrivePlan:
        """Async twin of `plan_redrive`."""
        return await adrive(self._plan_redrive(execution_id, tenant, from_step))

    def _plan_redrive(
        self, execution_id: UUID | str, tenant: str | None, from_step: int | str | None
    ) -> Verb[RedrivePlan]:
        yield from self._verbs.jobs.authorization.check("get", parse_job_id(execution_id))
        found = yield from self._verbs.found(execution_id, tenant)
        log = yield from self._log(found.stored.id)
        far = yield from self._verbs.jobs.access.read(execution_progress.progress, found.stored.id)
        return plan_of(self._declared, found.stored, log, far, from_step)


def checked_status(status: object) -> ExecutionStatus | None:
    """Return a status given as text or value; raise for others."""
    if status is None:
        return None
    try:
        return ExecutionStatus(str(status).upper())
    except ValueError:
        known = ", ".join(ExecutionStatus)
        raise InvalidOptionError(f"status must be one of {known}, got {status!r}") from None


def _check_redrive(expected: object, note: object, reset: object) -> None:
    """Raise if an option of a re-drive has no value that it can have."""
    if expected is not None and (not isinstance(expected, int) or isinstance(expected, bool)):
        raise InvalidOptionError(
            f"expected_version must be the row_version that you have seen, a whole number, or None, got {expected!r}"
        )
    if not isinstance(note, str):
        raise InvalidOptionError(f"note must be a text for the audit log, got {note!r}")
    if not isinstance(reset, bool):
        raise InvalidOptionError(f"reset_attempts must be True or False, got {reset!r}")


def _outline(step: PipelineStep) -> tuple[str, ...]:
    """Return what the definition hash covers of a step: a stored value has one of its types."""
    return step.name, step.kind.value, type_name(step.takes), type_name(step.gives)
