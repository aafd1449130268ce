"""The verbs of `app.executions` that report: on all pipelines, and on one execution why it waits and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from windlass.client.execution_details import differing_outputs, progress_of, stored_steps, waiting_execution
from windlass.client.execution_verbs import OneExecutionVerbs
from windlass.client.handoff_views import backlogs
from windlass.client.pipeline_summaries import summaries
from windlass.domain.execution import ENDED
from windlass.domain.execution_explanation import explain_execution
from windlass.domain.execution_progress import ExecutionProgress
from windlass.domain.explanation import Explanation, explain
from windlass.domain.identity import parse_job_id
from windlass.domain.keys import check_key
from windlass.domain.output_differences import StepDifference, StepOutput, differences
from windlass.domain.pipeline_summary import PipelineSummary
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import (
    execution_progress,
    execution_reads,
    explanations,
    external_waits,
    pipeline_counts,
    subscriptions,
)
from windlass.stores.plans.execution_reads import FoundExecution, StoredExecution, StoredTransition

DEFAULT_TENANT = "default"
LOG_PAGE = 1_000
"""Number of rows of a log that one statement reads."""
PARTS_EXPLAINED = 8
"""Number of parts whose jobs are explained: as many as usually have a job at the same time."""


class ExecutionReports:
    """Verbs that report about executions."""

    def __init__(self, verbs: OneExecutionVerbs, declared: DeclaredPipelines) -> None:
        self._verbs = verbs
        self._declared = declared

    def overview(self) -> list[PipelineSummary]:
        """Return every pipeline that is declared here, was run by a node or has open executions, by name.

        For each what is open, what has ended and was rejected in the last hour and in the hour before, and what a
        rising count means. Of all tenants; counts stop at 10,000.
        """
        return drive(self._overview())

    async def aoverview(self) -> list[PipelineSummary]:
        """Async twin of `overview`."""
        return await adrive(self._overview())

    def _overview(self) -> Verb[list[PipelineSummary]]:
        access = self._verbs.jobs.access
        yield from self._verbs.jobs.authorization.check("executions")
        stored = yield from access.read(execution_reads.pipelines)
        counts = yield from access.read(pipeline_counts.overview)
        waiting = yield from access.read(subscriptions.backlog, self._declared.subscriptions())
        found = backlogs(waiting, *(yield from access.read(subscriptions.counts)))
        outside = yield from access.read(external_waits.counts, pipeline_counts.MOST_COUNTED)
        return summaries(self._declared.register_all(), stored, counts, found, outside)

    def explain(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> Explanation:
        """Explain why an execution is not running: the first thing that holds it, or its items, back."""
        return drive(self._explain(execution_id, tenant))

    async def aexplain(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> Explanation:
        """Async twin of `explain`."""
        return await adrive(self._explain(execution_id, tenant))

    def _explain(self, execution_id: UUID | str, tenant: str) -> Verb[Explanation]:
        found = yield from self._checked("explain", execution_id, tenant)
        steps = yield from self._steps(found.stored)
        far = yield from self._verbs.jobs.access.read(execution_progress.progress, found.stored.id)
        waiting = waiting_execution(self._declared, found, steps, far)
        if waiting.status in ENDED:
            return explain_execution(waiting, None, ())
        jobs = [found.stored.id, *(part.job_id for part in far.parts[:PARTS_EXPLAINED])]
        explained = []
        for job in jobs:
            facts = yield from self._verbs.jobs.access.read(explanations.waiting_job, job)
            explained.append(None if facts is None else explain(*facts))
        return explain_execution(waiting, explained[0], [one for one in explained[1:] if one is not None])

    def progress(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> ExecutionProgress:
        """Return how far an execution has come: its steps, the items of its stages by state, and its parts."""
        return drive(self._progress(execution_id, tenant))

    async def aprogress(self, execution_id: UUID | str, tenant: str = DEFAULT_TENANT) -> ExecutionProgress:
        """Async twin of `progress`."""
        return await adrive(self._progress(execution_id, tenant))

    def _progress(self, execution_id: UUID | str, tenant: str) -> Verb[ExecutionProgress]:
        found = yield from self._checked("get", execution_id, tenant)
        steps = yield from self._steps(found.stored)
        far = yield from self._verbs.jobs.access.read(execution_progress.progress, found.stored.id)
        return progress_of(steps, far)

    def diff(self, first: UUID | str, second: UUID | str, tenant: str = DEFAULT_TENANT) -> list[StepDifference]:
        """Compare what the steps of two executions gave, step by step, by their logs; of items how many there were."""
        return drive(self._diff(first, second, tenant))

    async def adiff(self, first: UUID | str, second: UUID | str, tenant: str = DEFAULT_TENANT) -> list[StepDifference]:
        """Async twin of `diff`."""
        return await adrive(self._diff(first, second, tenant))

    def _diff(self, first: UUID | str, second: UUID | str, tenant: str) -> Verb[list[StepDifference]]:
        outputs = []
        for one in (first, second):
            outputs.append((yield from self._outputs(one, tenant)))
        return differences(*outputs)

    def _outputs(self, execution_id: UUID | str, tenant: str) -> Verb[dict[str, StepOutput]]:
        found = yield from self._checked("history", execution_id, tenant)
        steps = yield from self._steps(found.stored)
        far = yield from self._verbs.jobs.access.read(execution_progress.progress, found.stored.id)
        log = yield from self._log(found.stored.id)
        return differing_outputs(self._verbs.reader, found.stored, steps, far, log)

    def _checked(self, action: str, execution_id: UUID | str, tenant: str) -> Verb[FoundExecution]:
        key = parse_job_id(execution_id)
        check_key(tenant, "tenant")
        yield from self._verbs.jobs.authorization.check(action, key)
        return (yield from self._verbs.found(key, tenant))

    def _steps(self, stored: StoredExecution) -> Verb[tuple[str, ...]]:
        """Return the names of an execution's steps: as declared here, else as a node has stored them."""
        pipeline = self._declared.get(stored.pipeline, stored.pipeline_version)
        if pipeline is not None and pipeline.definition.hash == stored.definition_hash:
            return tuple(step.name for step in pipeline.definition.steps)
        return stored_steps((yield from self._verbs.jobs.access.read(execution_reads.pipelines)), stored)

    def _log(self, key: str) -> Verb[Sequence[StoredTransition]]:
        """Return the whole log of an execution."""
        log: list[StoredTransition] = []
        while True:
            after = log[-1].version if log else 0
            page = yield from self._verbs.jobs.access.read(execution_reads.transitions, key, after, LOG_PAGE)
            log += page
            if len(page) < LOG_PAGE:
                return log
