"""The duties of a cluster, as one node knows them: each waits for its turn, at most one node has it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from windlass.domain.cron import Cron
from windlass.domain.lease_times import lease_for
from windlass.domain.rhythm import AtTimes, Every, Rhythm
from windlass.feature import Purge
from windlass.maintenance.archive_duty import Archiving
from windlass.maintenance.expiry import Expiry
from windlass.maintenance.purge_duty import Purging
from windlass.maintenance.recovery import Recovery
from windlass.maintenance.statistics_duty import Statistics
from windlass.maintenance.sweeper import Sweeper
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.settings import Settings
from windlass.stores.database import Database
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans.leases import ARCHIVE, STATISTICS, SWEEPER


class Duties:
    """Starts and stops them together."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        identity: NodeIdentity,
        recovery: Recovery,
        expiry: Expiry,
        errors: ErrorHandling,
        *,
        purges: Sequence[Purge] = (),
        ids_tell_time: bool = True,
    ) -> None:
        lease = lease_for(settings.node.heartbeat_interval, settings.node.missed_heartbeats)

        def turns(name: str, rhythm: Rhythm) -> LeaseHolder:
            return LeaseHolder(database, name, lambda: identity.id, lease, rhythm)

        archive = turns(ARCHIVE, Every(settings.jobs.archive_interval))
        sweeper = turns(SWEEPER, Every(settings.node.sweep_interval))
        statistics = turns(STATISTICS, Every(settings.node.statistics_interval))
        self.all: list[Duty] = [  # the sweeper first: it frees what keeps others waiting
            Sweeper(database, sweeper, recovery, expiry, settings.node.sweep_interval, errors),
            Archiving(database, archive, settings.jobs.retention, errors, ids_tell_time=ids_tell_time),
            Statistics(statistics, errors),
        ]
        for purge in purges:
            if purge.cron is not None:
                nightly = turns(f"purge of {purge.what}", AtTimes(Cron(purge.cron)))
                self.all.append(Purging(nightly, purge.plan, purge.age, purge.what, errors))

    def start(self) -> None:
        """Begin to look whose turn it is."""
        for duty in self.all:
            duty.start()

    async def stop(self) -> None:
        """Finish the batches at hand and give the leases back."""
        await asyncio.gather(*(duty.stop() for duty in self.all))
