"""Hand-offs to subscribers outside of the database, written as a publication does, and relays for them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tests.support.facts import rows
from windlass import Outlet, Windlass
from windlass.feature import Feature, NodeTools
from windlass.pipelines.delivery_attempts import Route
from windlass.pipelines.delivery_sources import HandoffSource
from windlass.pipelines.relay import Relay
from windlass.pipelines.relay_bells import RelayBells
from windlass.runtime.duty import Duty

PUBLICATION = "invoices"


class StoredHandoff(NamedTuple):
    key: str
    status: str
    attempts: int
    reason: str | None
    payload: str | None
    seen_key: str | None
    is_settled: bool
    has_due: bool


def hand_off(url: str, subscriber: str, keys: Sequence[str], tenant: str = "acme") -> list[UUID]:
    """Store a hand-off for each key, due at once; the payload is the key."""
    ids = [uuid4() for _ in keys]
    values = ", ".join(
        f"('{id_}', '{PUBLICATION}', '{subscriber}', '{tenant}', '{key}', '{key}', NULL, '0', 'c-{key}', "
        f"'{json.dumps({'id': key})}', 'hash', 'WAITING', 0, {place}, {place})"
        for place, (id_, key) in enumerate(zip(ids, keys, strict=True))
    )
    rows(
        url,
        "INSERT INTO windlass_handoff (id, publication, subscriber, tenant, key, seen_key, source_id, item, "
        f"correlation_id, payload, payload_hash, status, attempts, due, created_at) VALUES {values}",
    )
    return ids


def subscribe(url: str, subscriber: str, *, paused: bool) -> None:
    """Store a subscription."""
    rows(url, f"DELETE FROM windlass_subscription WHERE subscriber = '{subscriber}'")
    values = f"('{PUBLICATION}', '{subscriber}', 'remote', '{{}}', {int(paused)})"
    rows(url, f"INSERT INTO windlass_subscription (publication, subscriber, kind, config, paused) VALUES {values}")


def stored(url: str, subscriber: str) -> dict[str, StoredHandoff]:
    """The hand-offs to a subscriber, by key."""
    found = rows(
        url,
        "SELECT key, status, attempts, reason, payload, seen_key, settled_at, due FROM windlass_handoff "
        f"WHERE subscriber = '{subscriber}'",
    )
    return {row[0]: StoredHandoff._make((*row[:6], row[6] is not None, row[7] is not None)) for row in found}


def statuses_of(url: str, subscriber: str) -> dict[str, str]:
    return {key: one.status for key, one in stored(url, subscriber).items()}


class RemoteStage:
    """An application whose workers deliver to outlets."""

    def __init__(self, app: Windlass, outlets: Mapping[str, Outlet]) -> None:
        self.app = app
        self.bells = RelayBells()
        self.relays: list[Relay] = []
        self._outlets = outlets
        app.exchange(app.parts._replace(features=(Feature("remote", duties=self._duties),)))

    def _duties(self, tools: NodeTools) -> list[Duty]:
        routes = [Route(HandoffSource(PUBLICATION, name, _same), outlet) for name, outlet in self._outlets.items()]
        describe = self.app.parts.sanitizer.sanitize
        self.relays = [Relay(one, tools, describe, self.bells.of(one.source.destination)) for one in routes]
        return list(self.relays)

    def wake(self) -> None:
        """Wake all relays, as a commit does."""
        for name in self._outlets:
            self.bells.ring(f"{PUBLICATION}/{name}")


def _same(payload: str) -> str:
    return payload


def bodies(requests: Sequence[Any]) -> list[str]:
    """The ids in the bodies of requests."""
    return [json.loads(request.body)["id"] for request in requests]
