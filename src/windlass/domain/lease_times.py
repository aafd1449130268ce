"""Intervals of heartbeats and durations of leases."""

from math import sqrt
from typing import Final

from windlass.errors import InvalidOptionError

SMALL_CLUSTER: Final = 10
QUICK_STORE: Final = 0.05
_SHORTEST: Final = 0.5
_LONGEST: Final = 2.0


def heartbeat_interval(base: float, utilisation: float, live_nodes: int, store_latency: float) -> float:
    """Return the seconds until the next heartbeat, between half and twice `base`.

    A busy node beats more often: if it dies, more work waits for its recovery. Many nodes (over 10) and a slow store
    (over 50 ms) stretch the interval, by a root, so that the load of all heartbeats grows slower than its cause.
    """
    if not base > 0:
        raise InvalidOptionError(f"node.heartbeat_interval must be more than 0 seconds, got {base!r}")
    busy = 1 - min(max(utilisation, 0.0), 1.0) / 2
    crowd = sqrt(max(live_nodes / SMALL_CLUSTER, 1.0))
    slowness = sqrt(max(store_latency / QUICK_STORE, 1.0))
    return base * min(max(busy * crowd * slowness, _SHORTEST), _LONGEST)


def lease_for(interval: float, missed: int = 3) -> float:
    """Return the seconds for which a heartbeat keeps the lease: `missed` intervals of the length it announces."""
    if missed < 1:
        raise InvalidOptionError(f"node.missed_heartbeats must be at least 1, got {missed!r}")
    return interval * missed
