"""Plans for named leases: one holder at a time, for a while, with a fence that taking and releasing raise.

A holder is a node. A lease is free when it has no holder, has expired, or its holder is not a live node any more, so
that the leases of a lost node are free as soon as it is found lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from windlass.runtime.duty import LeaseLostError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

T = TypeVar("T")

ARCHIVE: Final = "archive"
EXECUTIONS: Final = "executions"
FLOWS: Final = "flows"
RECOVERY: Final = "recovery"
SCHEDULES: Final = "schedules"
STATISTICS: Final = "statistics"
SWEEPER: Final = "sweeper"


class Lease(NamedTuple):
    """A lease that was taken, its holder and its fence."""

    name: str
    holder: str
    fence: int


class Seen(NamedTuple):
    """The state of a lease, by the store's clock."""

    now: int
    since: int
    """When it was created."""
    passed_at: int | None
    """When its duty was last completed."""
    fence: int
    free_at: int
    """When it will be free at the latest."""


def read(dialect: Dialect, name: str) -> Plan[Seen | None]:
    """Return the state of a lease; None when it does not exist."""
    del dialect
    row = yield Step("read_lease", {"name": name}, alone=True)
    return None if row is None else Seen._make(row)


def create(dialect: Dialect, name: str) -> Plan[None]:
    """Create a lease without a holder, unless it exists."""
    del dialect
    yield Step("create_lease", {"name": name}, alone=True)


def take(dialect: Dialect, lease: Lease, lease_us: int) -> Plan[Lease | None]:
    """Take a lease that is free, or one's own, if its fence is still the one seen; return None otherwise."""
    del dialect
    params = {**lease._asdict(), "lease_us": lease_us}
    count: int = yield Step("take_lease", params, alone=True)
    return lease._replace(fence=lease.fence + 1) if count == 1 else None


def held(dialect: Dialect, lease: Lease, lease_us: int, work: Callable[[Dialect], Plan[T]]) -> Plan[T]:
    """Renew a lease and run a plan in one transaction; raise `LeaseLostError` without changes if it was taken over.

    Renewing locks the lease's row, so that no other node can take it before the commit.
    """
    count: int = yield Step("renew_lease", {**lease._asdict(), "lease_us": lease_us})
    if count != 1:
        raise LeaseLostError(lease.name)
    result = yield from work(dialect)
    return result


def release(dialect: Dialect, lease: Lease, *, passed: bool) -> Plan[bool]:
    """Release a lease; `passed`: its duty is done for this time. Return False when it was taken over before."""
    del dialect
    count: int = yield Step("release_lease", {**lease._asdict(), "passed": int(passed)}, alone=True)
    return count == 1


def release_abandoned(dialect: Dialect) -> Plan[int]:
    """Release leases of dead nodes. Cosmetic: other nodes may take these leases anyway."""
    del dialect
    count: int = yield Step("release_abandoned_leases")
    return count


class LastPass(NamedTuple):
    """When a duty was last completed, by the store's clock."""

    now: int
    passed_at: int | None
    node_since: int | None
    """Since when there is a node that could do it."""

    @property
    def age_us(self) -> int | None:
        """Microseconds since its last pass; None before the first one."""
        return None if self.passed_at is None else max(self.now - self.passed_at, 0)

    def late(self, after_us: int) -> bool:
        """Return whether it has not passed for so long although there was a node to do it."""
        if self.node_since is None:
            return False
        return self.now - max(self.passed_at or 0, self.node_since) > after_us


def last_pass(dialect: Dialect, name: str) -> Plan[LastPass | None]:
    """Return when a duty last passed; None when it does not exist."""
    del dialect
    row = yield Step("last_pass", {"name": name}, alone=True)
    return None if row is None else LastPass._make(row)
