"""The features of an application: each is exported by its own package, and registered here."""

from __future__ import annotations

import socket

from windlass.failure import dead_letters
from windlass.feature import Feature
from windlass.flow import callbacks
from windlass.parts import Parts
from windlass.publisher import retry_times
from windlass.resilience import circuits
from windlass.stores.ending import FollowUps


def features_of(parts: Parts) -> tuple[Feature, ...]:
    """All features of an application. Their follow-ups are written in this order."""
    return (
        callbacks.feature(parts.registry, parts.serializer, parts.database.known_queues),
        dead_letters.feature(parts.database.dialect.name, socket.gethostname(), parts.settings.dead_letters),
        retry_times(parts.bus),
        circuits.feature(parts.settings.circuits.profile.value),
        *parts.features,
    )


def follow_ups_of(parts: Parts) -> FollowUps:
    """What belongs to the end of its jobs."""
    return tuple(one for feature in features_of(parts) for one in feature.follow_ups)
