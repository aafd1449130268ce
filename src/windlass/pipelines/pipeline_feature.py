"""Pipelines as a feature of an application and its nodes."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from windlass import loggers
from windlass.domain.cluster import NOTHING_DECLARED, Declared
from windlass.domain.publication import REMOTE, SubscriptionRow
from windlass.domain.rhythm import Always, Every
from windlass.feature import Feature, NodeStart, NodeTools
from windlass.pipelines import backlog_duty, deferral_duty
from windlass.pipelines.backlog_duty import BacklogDuty
from windlass.pipelines.claimed_execution import tenant_resource
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.deferral_duty import DeferralDuty
from windlass.pipelines.definition import Definition
from windlass.pipelines.execution_check_duty import ExecutionChecks
from windlass.pipelines.follow_ups import follow_ups
from windlass.pipelines.step_types import type_name
from windlass.purge_duty import purge_duties
from windlass.runtime.duty import Duty
from windlass.settings import PipelinesSettings
from windlass.stores.database import Database
from windlass.stores.plans import execution_retention, executions, limits, pipeline_counts, rejects, subscriptions
from windlass.stores.plans.leases import EXECUTIONS

logger = loggers.logger("windlass.pipelines")


def feature(
    declared: DeclaredPipelines | None, database: Database, settings: PipelinesSettings, check_interval: float
) -> Feature:
    """Return the executions of pipelines as a feature; an application without pipelines has no duties of it."""
    known_queues = database.known_queues
    if declared is None:
        return Feature("pipelines", follow_ups(known_queues, None))

    def duties(tools: NodeTools) -> Sequence[Duty]:
        if not declared.any:
            return ()
        longest, cron = settings.max_circuit_deferral, settings.purge_cron
        deferrals = tools.lease(deferral_duty.NAME, Every(deferral_duty.interval_for(longest)))
        checks = tools.lease(EXECUTIONS, Every(check_interval))
        return (
            ExecutionChecks(checks, tools),
            DeferralDuty(deferrals, longest, tools),
            *_publication_duties(declared, settings, tools, known_queues),
            *purge_duties("executions", execution_retention.purge, settings.retention, cron)(tools),
            *purge_duties("rejects", rejects.purge, settings.reject_retention, cron)(tools),
        )

    async def announce() -> None:
        await _announce(declared, database)

    ends = follow_ups(known_queues, declared.subscribers)
    return Feature("pipelines", ends, duties, start=NodeStart(_nothing, _before, announce))


def _publication_duties(
    declared: DeclaredPipelines, settings: PipelinesSettings, tools: NodeTools, known_queues: Collection[str]
) -> Sequence[Duty]:
    """Return the duties of publications; a node whose pipelines neither publish nor subscribe has none."""
    if not declared.subscriptions() and not any(pipeline.publications for pipeline in declared):
        return ()
    lease = tools.lease(backlog_duty.NAME, Always())
    backlog = BacklogDuty(lease, declared.subscribers, tools, known_queues)
    purges = purge_duties("hand-offs", subscriptions.purge, settings.retention, settings.purge_cron)(tools)
    return (backlog, *purges)


def _nothing() -> Declared:
    return NOTHING_DECLARED


async def _before() -> None:
    """Do nothing before the node registers."""


async def _announce(declared: DeclaredPipelines, database: Database) -> None:
    """Store the definitions of a node, and warn of executions that were begun with others of the same version."""
    definitions = declared.register_all()
    if not definitions:
        return
    await database.arun(executions.save_pipelines, [_row(definition) for definition in definitions])
    await _subscribe(declared, database)
    known = {(one.name, one.version): one.hash for one in definitions}
    for name, version, digest, count in await database.aread(pipeline_counts.open_by_definition):
        if known.get((name, version), digest) != digest:
            logger.warning(
                "%d open executions of pipeline %s@%s were begun with other steps (definition %s, here %s): they wait "
                "for a worker that has these; give changed steps a new version, or move them with "
                "redrive(id, to_version=...); list them with `windlass execution list --stranded`",
                *(count, name, version, digest[:12], known[name, version][:12]),
            )


async def _subscribe(declared: DeclaredPipelines, database: Database) -> None:
    """Store the subscribers to the publications of this application, and remove former ones."""
    subscribers = declared.subscribers.of()
    rows = [(one.subscription, one.config) for one in subscribers]
    rows += [(SubscriptionRow(*destination, REMOTE), "{}") for destination in sorted(declared.outlets())]
    await database.arun(subscriptions.register, rows, sorted({one.name for one in declared}))
    for one in subscribers:
        most = one.definition.options.tenant_concurrency
        if most is not None:
            limit = limits.Limit(most, None, None)
            await database.arun(limits.configure_resource, tenant_resource(one.name), limit)


def _row(definition: Definition) -> dict[str, str]:
    steps = [
        {"name": step.name, "kind": step.kind.value, "takes": type_name(step.takes), "gives": type_name(step.gives)}
        for step in definition.steps
    ]
    return {
        "name": definition.name,
        "version": definition.version,
        "hash": definition.hash,
        "definition": json.dumps({"steps": steps}),
    }
