"""A node's part in the cluster, put together: its heartbeat, the recovery of others, the duties that it may do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from windlass.domain.clock import SystemClock
from windlass.feature import Feature
from windlass.maintenance.duties import Duties
from windlass.maintenance.expiry import Expiry
from windlass.maintenance.heartbeat import Heartbeat, Load
from windlass.maintenance.recovery import Recovery
from windlass.node_engine import NodeEngine
from windlass.parts import Parts
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service_errors import ServiceErrors
from windlass.stores.node_identity import NodeIdentity


class NodeMembership:
    """The services that deal with other nodes."""

    def __init__(
        self,
        parts: Parts,
        identity: NodeIdentity,
        engine: NodeEngine,
        features: Sequence[Feature],
        asked_to_drain: asyncio.Event,
        errors: ErrorHandling,
    ) -> None:
        database, settings = parts.database, parts.settings
        follow_ups = tuple(one for feature in features for one in feature.follow_ups)
        self.pulse = database.apart()
        """The store on connections of its own: a beat must not wait for what bodies on threads ask the store."""
        on_loop = asyncio.get_running_loop().call_soon_threadsafe
        self.heartbeat = Heartbeat(
            self.pulse,
            identity,
            settings.node,
            partial(_load, engine, errors.service_errors),
            # What runs in the old id's name is others' by now, and nobody would hear what it returns.
            partial(on_loop, engine.cancellations.hinted, ()),
            partial(on_loop, asked_to_drain.set),
            errors,
        )
        ends = (follow_ups, engine.publisher)
        self.recovery = Recovery(
            database, settings.node, *ends, parts.clock, self.heartbeat, engine.targets.take, errors
        )
        self.duties = Duties(
            database,
            settings,
            identity,
            self.recovery,
            Expiry(*ends),
            errors,
            purges=[purge for feature in features for purge in feature.purges],
            ids_tell_time=isinstance(parts.clock, SystemClock),
        )

    async def stop(self) -> None:
        """Leave what others can do as well; the heart goes on until the node signs off."""
        await asyncio.gather(self.recovery.stop(), self.duties.stop())


def _load(engine: NodeEngine, errors: ServiceErrors | None) -> Load:
    slots = engine.slots
    return Load(slots.running, slots.utilisation, None if errors is None else errors.text())
