"""The last items of an execution as a publication: with its success, or in chunks of which the last is the success."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from windlass.domain.ended import Effects
from windlass.domain.execution import LogRow
from windlass.domain.identity import new_job_id
from windlass.domain.item_paths import readable
from windlass.domain.publication import REMOTE, SubscriptionRow, short_reason
from windlass.errors import JobTimeoutError
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.item_values import fingerprint
from windlass.pipelines.publication_declaration import Publication
from windlass.pipelines.subscribers import Subscriber, Subscribers, log_failures
from windlass.pipelines.transitions import Transitions
from windlass.runtime.failpoints import reached
from windlass.runtime.threads import Interrupted
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import handoffs, items
from windlass.stores.plans.handoffs import PublishedItem, PublishedItems
from windlass.stores.plans.items import DoneItem

MOST: Final = 500
"""Number of items that are handed over in one transaction."""
MOST_BYTES: Final = 8 << 20
"""Length of their values at which there are no more in it."""
PAGE: Final = 100
"""Number of items that one statement reads."""
SINGLE: Final = "0"
"""The position of a single value."""


class FinalItem(NamedTuple):
    """An item behind the last step."""

    position: str
    type: int
    text: str


class FinalItems:
    """Prepares the hand-over of an execution's last items; user code runs here, before the transaction."""

    def __init__(self, claimed: ClaimedExecution, transitions: Transitions, subscribers: Subscribers) -> None:
        self._claimed = claimed
        self._transitions = transitions
        self._subscribers = subscribers

    async def of_value(self, value: Any) -> tuple[PublishedItems, ...]:
        """Return what is published of a single value."""
        claimed = self._claimed
        if not claimed.definition.publications:
            return ()
        number = claimed.definition.number_of(value) or 0
        return await self._prepared([FinalItem(SINGLE, number, claimed.values.encode(number, value))])

    async def next_chunk(self) -> tuple[PublishedItems, ...] | None:
        """Return what is published with the success; None if a chunk was stored, and there is more."""
        claimed, state = self._claimed, self._claimed.state
        if not claimed.definition.publications:
            return ()
        chunk, more = await self._chunk()
        nothing = claimed.values.nothing
        given = [FinalItem(readable(item.path), item.type, item.value or nothing) for item in chunk]
        outgoing = await self._prepared(given)
        if not more:
            return outgoing
        following = state._replace(cut=chunk[-1].path)
        log = LogRow("published", max(0, state.cursor - 1), state.attempt)
        queues = claimed.runtime.database.known_queues
        publish = partial(publish_plan, outgoing=outgoing, known_queues=queues, subscribers=self._subscribers)
        await self._transitions.store(following, log, publish=publish)
        reached("publish.chunk_after_commit")
        return None

    async def _chunk(self) -> tuple[list[DoneItem], bool]:
        """Return the next items, as many as one transaction hands over, and whether there are more."""
        state, found, size = self._claimed.state, list[DoneItem](), 0
        while True:
            after = found[-1].path if found else state.cut
            page = await self._claimed.runtime.read(items.done, state.id, state.stage, after, PAGE)
            for item in page:
                if len(found) == MOST or size >= MOST_BYTES:
                    return found, True
                found.append(item)
                size += len(item.value or "")
            if len(page) < PAGE:
                return found, False

    async def _prepared(self, given: Sequence[FinalItem]) -> tuple[PublishedItems, ...]:
        found = []
        for publication in self._claimed.definition.publications:
            subscribers = self._subscribers.of(publication.name)
            prepare = partial(self._items, publication, subscribers, given)
            if publication.key is None and len(given) == 1:
                prepared = prepare()
            else:  # a function of the user, or more work than the loop should wait for
                prepared = await self._on_thread(publication, given, prepare)
            found.append(self._outgoing(publication, subscribers, prepared))
        return tuple(found)

    async def _on_thread(
        self, publication: Publication, given: Sequence[FinalItem], prepare: Callable[[], list[PublishedItem]]
    ) -> list[PublishedItem]:
        what = f"the key function of publication {publication.name!r}"
        try:
            return await self._claimed.runtime.calls.run_beside(what, self._claimed.definition.target, prepare)
        except JobTimeoutError as error:
            return [self._without_key(item, str(error)) for item in given]

    def _outgoing(
        self, publication: Publication, subscribers: Sequence[Subscriber], prepared: Sequence[PublishedItem]
    ) -> PublishedItems:
        state, correlation_id = self._claimed.state, self._claimed.context.correlation_id
        known = [one.subscription for one in subscribers]
        known += [SubscriptionRow(publication.name, target, REMOTE) for target in publication.to]
        return PublishedItems(publication.name, state.tenant, state.id, correlation_id or state.id, prepared, known)

    def _items(
        self, publication: Publication, subscribers: Sequence[Subscriber], given: Sequence[FinalItem]
    ) -> list[PublishedItem]:
        return [self._item(publication, subscribers, item) for item in given]

    def _item(self, publication: Publication, subscribers: Sequence[Subscriber], item: FinalItem) -> PublishedItem:
        claimed = self._claimed
        value = claimed.values.decode(item.type, item.text)
        key = self._default_key(item)
        if publication.key is not None:
            try:
                key = publication.key_of(value)
            except Interrupted:
                raise
            except BaseException as error:  # noqa: BLE001 - users' code; the execution has succeeded all the same
                described = claimed.runtime.tools.describe(error).error
                return self._without_key(item, f"its key function failed: {described}")
        tenant, correlation_id = claimed.state.tenant, claimed.context.correlation_id or claimed.state.id
        admissions = {
            one.name: one.admitted(item.text, key, tenant, correlation_id, new_job_id()) for one in subscribers
        }
        return PublishedItem(key, item.position, item.text, fingerprint(value), admissions)

    def _without_key(self, item: FinalItem, reason: str) -> PublishedItem:
        return PublishedItem(self._default_key(item), item.position, item.text, "", {}, short_reason(reason))

    def _default_key(self, item: FinalItem) -> str:
        return f"{self._claimed.state.id}:{item.position}"


def publish_plan(
    dialect: Dialect,
    *,
    outgoing: Sequence[PublishedItems],
    known_queues: Collection[str],
    subscribers: Subscribers | None,
) -> Plan[Effects]:
    """Hand items over within a transaction; return what follows its commit."""
    published = yield from handoffs.publish(dialect, outgoing, known_queues)
    calls = [partial(log_failures, published.failures)] if published.failures else []
    if published.remote and subscribers is not None:
        calls.append(partial(subscribers.wake_remote, published.remote))
    return Effects(work=published.work, calls=tuple(calls))
