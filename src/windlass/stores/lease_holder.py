"""One node's side of a named lease: take it, work under it, release it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from windlass.domain.clock import MICROSECONDS
from windlass.domain.rhythm import Rhythm
from windlass.runtime.duty import LeaseLostError
from windlass.stores.database import Database, P, PlanFunction
from windlass.stores.plans import leases

T = TypeVar("T")

SOON = 0.1
"""Seconds after which another holder may have finished."""


class LeaseHolder:
    """Takes a lease at the times of its rhythm, and runs plans that write nothing once it is lost."""

    def __init__(self, database: Database, name: str, node: Callable[[], str], seconds: float, rhythm: Rhythm) -> None:
        self._database = database
        self._name = name
        self._node = node
        self._lease_us = int(seconds * MICROSECONDS)
        self._rhythm = rhythm
        self._lease: leases.Lease | None = None
        self.idle_for = 0.0
        """Seconds since the duty was last done when the lease was taken; 0 if it never was."""

    async def take(self) -> float:
        """Try to take the lease; return 0 on success, else the seconds after which to try again."""
        seen = await self._database.aread(leases.read, self._name)
        if seen is None:
            await self._database.arun(leases.create, self._name)
            seen = await self._database.arun(leases.read, self._name)
        if seen is None:
            return SOON
        wait = self._rhythm.wait(seen.now, seen.since, seen.passed_at)
        if wait > 0:
            return wait / MICROSECONDS
        wanted = leases.Lease(self._name, self._node(), seen.fence)
        self._lease = await self._database.arun(leases.take, wanted, self._lease_us)
        if self._lease is not None:
            self.idle_for = 0.0 if seen.passed_at is None else (seen.now - seen.passed_at) / MICROSECONDS
            return 0.0
        return max(min(seen.free_at - seen.now, self._lease_us) / MICROSECONDS, SOON)

    async def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Renew the lease and run a plan in one transaction; raise `LeaseLostError` if another node has it."""
        if self._lease is None:
            raise LeaseLostError(self._name)
        return await self._database.arun(
            leases.held, self._lease, self._lease_us, lambda dialect: plan(dialect, *args, **kwargs)
        )

    async def release(self, *, passed: bool) -> None:
        """Release the lease; `passed`: all that was due is done."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await self._database.arun(leases.release, lease, passed=passed)
