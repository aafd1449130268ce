"""Relays as a feature of an application and its nodes: one for each destination outside of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.domain.cluster import NOTHING_DECLARED, Declared
from windlass.domain.deliveries import DEAD_LETTER, REJECT
from windlass.failure.dead_letters import DEAD_LETTERS
from windlass.feature import Feature, NodeStart, NodeTools
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.delivery_attempts import Route
from windlass.pipelines.delivery_sources import HandoffSource, OutboxSource
from windlass.pipelines.relay import Relay
from windlass.pipelines.subscribers import json_of_payload
from windlass.purge_duty import purge_duties
from windlass.runtime.duty import Duty
from windlass.settings import PipelinesSettings
from windlass.stores.database import Database
from windlass.stores.plans import outbox

logger = loggers.logger("windlass.outbox")


def feature(
    declared: DeclaredPipelines | None,
    database: Database,
    settings: PipelinesSettings,
    describe: Callable[[BaseException], str],
) -> Feature:
    """Return the relays of an application; one without outlets has none, and pays no statement.

    `describe` returns an error's text for storage: sanitised.
    """
    if declared is None:
        return Feature("relay")

    def duties(tools: NodeTools) -> Sequence[Duty]:
        found = routes(declared)
        if not found:
            return ()
        return (
            *(Relay(one, tools, describe, declared.bells.of(one.source.destination)) for one in found),
            *purge_duties("refused deliveries", outbox.purge, settings.reject_retention, settings.purge_cron)(tools),
        )

    async def explain() -> None:
        known = {one.source.destination for one in routes(declared)}
        if known or declared.any:
            await _warn_of_unknown_destinations(database, known)

    return Feature("relay", duties=duties, start=NodeStart(_nothing, _before, explain))


def routes(declared: DeclaredPipelines) -> list[Route]:
    """Return where the relays of an application deliver to."""
    found = [
        Route(OutboxSource(destination, REJECT), outlet) for destination, outlet in declared.reject_outlets().items()
    ]
    decoded = partial(json_of_payload, declared.serializer)
    found += [Route(HandoffSource(*destination, decoded), outlet) for destination, outlet in declared.outlets().items()]
    if declared.dead_letter_provider is not None:
        found.append(Route(OutboxSource(DEAD_LETTERS, DEAD_LETTER), declared.dead_letter_provider))
    return found


async def _warn_of_unknown_destinations(database: Database, known: set[str]) -> None:
    """Warn of what waits for destinations that this worker does not have."""
    for one in await database.aread(outbox.backlog):
        if one.destination not in known:
            logger.warning(
                "%d%s deliveries wait for %r, the oldest for %.0f s, and this worker has no outlet for it: they stay "
                "until a worker runs that has (a sink of the pipeline, or pipelines.dlq_provider)",
                *(one.waiting, "+" if one.waiting == outbox.MOST_COUNTED else "", one.destination),
                one.oldest_age_us / MICROSECONDS,
            )


def _nothing() -> Declared:
    return NOTHING_DECLARED


async def _before() -> None:
    """Do nothing before the node registers."""
