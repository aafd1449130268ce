"""Recurring work as a feature of an application and its nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windlass.domain.rhythm import Every
from windlass.feature import Feature, NodeStart, NodeTools
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.recurring.reconciliation import Reconciliation
from windlass.recurring.ticker import Ticker
from windlass.recurring.upkeep_duty import INTERVAL, ScheduleUpkeep
from windlass.runtime.verbs import adrive
from windlass.settings import RecurringSettings
from windlass.stores.database import Database
from windlass.stores.plans.leases import SCHEDULES


def feature(
    declared: DeclaredSchedules,
    database: Database,
    settings: RecurringSettings,
    known_queues: Collection[str],
) -> Feature:
    """Return what fires schedules, stores the declared ones when a node starts, and retires those that are not."""
    reconciliation = Reconciliation(declared, database)

    def duties(tools: NodeTools) -> Sequence[ScheduleUpkeep]:
        lease = tools.lease(SCHEDULES, Every(INTERVAL))
        return (ScheduleUpkeep(lease, settings.retire_after, tools.errors),)

    def services(tools: NodeTools) -> Sequence[Ticker]:
        return (Ticker(tools, reconciliation, settings.misfire_after, known_queues),)

    start = NodeStart(
        lambda: declared.as_declared, lambda: adrive(reconciliation.announce()), lambda: adrive(reconciliation.run())
    )
    return Feature("schedules", duties=duties, services=services, start=start)
