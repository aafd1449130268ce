"""A node's part in the cluster, assembled: its heartbeat, the recovery of others, services of features."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from windlass.domain.clock import monotonic
from windlass.domain.lease_times import lease_for
from windlass.domain.rhythm import Every, Rhythm
from windlass.feature import Feature, NodeTools
from windlass.features import follow_ups_of
from windlass.maintenance.expiry import Expiry
from windlass.maintenance.heartbeat import Heartbeat, NodeLoad
from windlass.maintenance.recovery import Recovery
from windlass.maintenance.sweeper import Sweeper
from windlass.node_engine import NodeEngine
from windlass.parts import Parts
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.runtime.service_errors import ServiceErrors
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans.leases import SWEEPER


class NodeMembership:
    """The services that concern other nodes, and those of features."""

    def __init__(
        self,
        parts: Parts,
        identity: NodeIdentity,
        engine: NodeEngine,
        features: Sequence[Feature],
        asked_to_drain: asyncio.Event,
        errors: ErrorHandling,
    ) -> None:
        settings, ends = parts.settings.node, (follow_ups_of(features), engine.publisher)
        self.pulse = parts.database.apart()
        """The store on separate connections: a beat must not wait for statements of bodies on threads."""
        on_loop = asyncio.get_running_loop().call_soon_threadsafe
        self.heartbeat = Heartbeat(
            self.pulse,
            identity,
            settings,
            partial(_load, engine, errors.service_errors),
            # Jobs claimed under the old id belong to other nodes now, and their results would be refused.
            partial(on_loop, engine.cancellations.hinted, ()),
            partial(on_loop, asked_to_drain.set),
            errors,
        )
        targets = engine.targets.take
        self.recovery = Recovery(parts.database, settings, *ends, parts.clock, self.heartbeat, targets, errors)
        tools = _tools(parts, identity, engine, errors)._replace(follow_ups=ends[0])
        interval = settings.sweep_interval
        sweeper = Sweeper(
            parts.database, tools.lease(SWEEPER, Every(interval)), self.recovery, Expiry(*ends), interval, errors
        )
        # The sweeper first: it releases what others wait for.
        self.duties: list[Duty] = [sweeper, *(duty for feature in features for duty in feature.duties(tools))]
        self.services = [service for feature in features for service in feature.services(tools)]

    def start(self) -> None:
        """Start the duties and the services of features."""
        for service in (*self.duties, *self.services):
            service.start()

    async def stop(self) -> None:
        """Finish current batches and release leases; the heartbeat continues until the node unregisters."""
        services: list[Service] = [self.recovery, *self.duties, *self.services]
        await asyncio.gather(*(service.stop() for service in services))


def _tools(parts: Parts, identity: NodeIdentity, engine: NodeEngine, errors: ErrorHandling) -> NodeTools:
    node = parts.settings.node
    seconds = lease_for(node.heartbeat_interval, node.missed_heartbeats)

    def lease(name: str, rhythm: Rhythm) -> LeaseHolder:
        return LeaseHolder(parts.database, name, lambda: identity.id, seconds, rhythm)

    return NodeTools(
        parts.database, lease, engine.publisher.publish, errors, engine.unfinished, engine.schedule_changes
    )


def _load(engine: NodeEngine, errors: ServiceErrors | None) -> NodeLoad:
    slots, text = engine.slots, None if errors is None else errors.text()
    return NodeLoad(slots.running, slots.utilisation, text, engine.poller.lags.counts(monotonic()))
