"""What a node knows of claimable work: other parts report changes, the poller reads them. Used on the loop only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windlass.domain.circuit import CircuitChange
from windlass.domain.clock import monotonic
from windlass.engine.outlook import Outlook
from windlass.runtime.service import Bell
from windlass.stores.claim_order import Head
from windlass.stores.plans.queues import Heads


class KnownWork:
    """The node's current outlook. Parts that change it need not know the poller, which the bell wakes."""

    def __init__(self, fresh: float, boost_us: int = 0) -> None:
        self.outlook = Outlook(fresh, monotonic(), boost_us)
        self.bell = Bell()

    def new_work(self, work: Iterable[tuple[str, int]]) -> None:
        """Record new work at these levels of queues, perhaps due now."""
        self._report(self.outlook.new_work(work, monotonic()))

    def changed(self) -> None:
        """Record that something unknown has changed."""
        self._report(self.outlook.changed())

    def expect(self, heads: Iterable[Head]) -> None:
        """Record when jobs of this node will be due: retries, snoozes."""
        self._report(self.outlook.expect(heads))

    def circuits_changed(self, changes: Iterable[CircuitChange]) -> None:
        """Record circuits that opened or closed by writes of this node."""
        self._report(self.outlook.circuits_changed(changes))

    def permits_freed(self, lanes: Iterable[tuple[str, str]]) -> None:
        """Record that jobs of these lanes, and perhaps of others behind the same gates, may be claimed now."""
        self._report(self.outlook.permits_freed(lanes, monotonic()))

    def jobs_ended(self) -> None:
        """Record that jobs ended on other nodes, and may have released permits that jobs wait for here."""
        held = self.outlook.answer.held
        self.outlook = self.outlook.jobs_ended()
        if held:
            self.bell.ring()

    def slot_freed(self) -> None:
        """Record that a slot is free which the last poll lacked."""
        self._report(self.outlook.slot_freed())

    def after_look(self, found: Heads) -> None:
        """Take the store's answer; permits released by jobs that ended meanwhile may be missing in it."""
        self.outlook = self.outlook.after_look(found, monotonic())
        if self.outlook.stale:
            self.bell.ring()

    def shut_circuits(self) -> Mapping[str, int]:
        """Return the circuits known to let nothing through, and until when by the store's clock."""
        return self.outlook.answer.shut

    def store_now(self) -> int:
        """Return the approximate time of the store's clock."""
        return self.outlook.store_now(monotonic())

    def _report(self, outlook: Outlook) -> None:
        self.outlook = outlook
        self.bell.ring()
