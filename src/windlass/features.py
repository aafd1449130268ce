"""The features of an application: each is exported by its own package, and registered here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial

from windlass.domain.clock import SystemClock
from windlass.failure import dead_letters
from windlass.feature import Feature
from windlass.flow import awaited_signals, callbacks, followers, guards, progress_calls, result_arguments
from windlass.maintenance import archive_duty, statistics_duty
from windlass.parts import Parts
from windlass.pipelines import pipeline_feature, relay_feature
from windlass.publisher import retry_times
from windlass.recurring import schedule_feature
from windlass.resilience import circuits
from windlass.stores.ending import FollowUps


def features_of(parts: Parts) -> tuple[Feature, ...]:
    """Return all features of an application. Their follow-ups are written in this order."""
    settings = parts.settings
    return (
        callbacks.feature(parts.registry, parts.serializer, parts.database.known_queues),
        dead_letters.feature(
            parts.database.dialect.name, socket.gethostname(), settings.dead_letters, _dead_letter_relay(parts)
        ),
        retry_times(parts.bus),
        circuits.feature(settings.circuits.profile.value),
        archive_duty.feature(settings.jobs, ids_have_times=isinstance(parts.clock, SystemClock)),
        statistics_duty.feature(settings.node.statistics_interval),
        awaited_signals.feature(),
        followers.feature(settings.node.sweep_interval),
        guards.feature(),
        progress_calls.feature(),
        result_arguments.feature(parts.registry, parts.serializer, settings.flows.max_joined_bytes),
        schedule_feature.feature(parts.declared, parts.database, settings.recurring, parts.database.known_queues),
        pipeline_feature.feature(parts.pipelines, parts.database, settings.pipelines, settings.node.sweep_interval),
        relay_feature.feature(parts.pipelines, parts.database, settings.pipelines, parts.sanitizer.sanitize),
        *parts.features,
    )


def _dead_letter_relay(parts: Parts) -> Callable[[], None] | None:
    """Return what wakes the relay of dead letters; None if they go nowhere but to the store."""
    if parts.pipelines is None or parts.pipelines.dead_letter_provider is None:
        return None
    return partial(parts.pipelines.bells.ring, dead_letters.DEAD_LETTERS)


def follow_ups_of(features: Sequence[Feature]) -> FollowUps:
    """Return what belongs to the end of jobs."""
    return tuple(one for feature in features for one in feature.follow_ups)
