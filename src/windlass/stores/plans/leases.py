"""Plans for named leases: one holder at a time, for a while, with a fence that taking and giving back raise.

A holder is a node. A lease is free when nobody holds it, when its time is over, or when its holder is no live node any
more, so that the leases of a lost node come back as soon as it is found lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from windlass.runtime.duty import LeaseLostError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

T = TypeVar("T")

ARCHIVE: Final = "archive"
RECOVERY: Final = "recovery"
STATISTICS: Final = "statistics"
SWEEPER: Final = "sweeper"


class Lease(NamedTuple):
    """A lease that was taken: who holds it, and by which fence."""

    name: str
    holder: str
    fence: int


class Seen(NamedTuple):
    """A lease as it is, by the store's clock."""

    now: int
    since: int
    """When it was first heard of."""
    passed_at: int | None
    """When its duty was last done to the end."""
    fence: int
    free_at: int
    """When it is free at the latest."""


def look(dialect: Dialect, name: str) -> Plan[Seen | None]:
    """A lease as it is; None when nobody ever asked for it."""
    del dialect
    row = yield Step("look_at_lease", {"name": name}, alone=True)
    return None if row is None else Seen._make(row)


def found(dialect: Dialect, name: str) -> Plan[None]:
    """Enter a lease that nobody holds, unless it is known."""
    del dialect
    yield Step("found_lease", {"name": name}, alone=True)


def take(dialect: Dialect, lease: Lease, lease_us: int) -> Plan[Lease | None]:
    """Take a lease that is free, or one's own, if its fence is still the one that was seen; None when it is not."""
    del dialect
    params = {**lease._asdict(), "lease_us": lease_us}
    count: int = yield Step("take_lease", params, alone=True)
    return lease._replace(fence=lease.fence + 1) if count == 1 else None


def held(dialect: Dialect, lease: Lease, lease_us: int, work: Callable[[Dialect], Plan[T]]) -> Plan[T]:
    """Renew a lease and do some work, in one transaction; `LeaseLostError` and no change if it was taken over.

    Renewing locks the lease's row, so nobody can take it before this has committed.
    """
    count: int = yield Step("renew_lease", {**lease._asdict(), "lease_us": lease_us})
    if count != 1:
        raise LeaseLostError(lease.name)
    result = yield from work(dialect)
    return result


def give_back(dialect: Dialect, lease: Lease, *, passed: bool) -> Plan[bool]:
    """Let go of a lease; `passed`: its duty is done for this time. False when it was taken over before."""
    del dialect
    count: int = yield Step("give_back_lease", {**lease._asdict(), "passed": int(passed)}, alone=True)
    return count == 1


def free_abandoned(dialect: Dialect) -> Plan[int]:
    """Let go of what nodes held that are no more. Others may take these leases anyway; this is for who looks."""
    del dialect
    count: int = yield Step("free_abandoned_leases")
    return count


class LastPass(NamedTuple):
    """When a duty was last done to the end, by the store's clock."""

    now: int
    passed_at: int | None
    somebody_since: int | None
    """Since when there is a node that could do it."""

    @property
    def age_us(self) -> int | None:
        """Microseconds since it passed; None before the first time."""
        return None if self.passed_at is None else max(self.now - self.passed_at, 0)

    def late(self, after_us: int) -> bool:
        """Whether it has not passed for so long, although there was somebody to do it."""
        if self.somebody_since is None:
            return False
        return self.now - max(self.passed_at or 0, self.somebody_since) > after_us


def last_pass(dialect: Dialect, name: str) -> Plan[LastPass | None]:
    """When a duty last passed; None when no node ever heard of it."""
    del dialect
    row = yield Step("last_pass", {"name": name}, alone=True)
    return None if row is None else LastPass._make(row)
