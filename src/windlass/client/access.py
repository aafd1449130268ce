"""The store as clients use it: its schema is seen to before the first plan runs."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from windlass.stores.database import Database, P, PlanFunction
from windlass.stores.migrate import Readiness

T = TypeVar("T")


class Access(NamedTuple):
    """Runs plans, sync and async."""

    database: Database
    readiness: Readiness

    def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan and block until it is committed."""
        self.readiness.ensure()
        return self.database.run(plan, *args, **kwargs)

    async def arun(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on the running loop."""
        await self.readiness.aensure()
        return await self.database.arun(plan, *args, **kwargs)

    def read(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan that writes nothing."""
        self.readiness.ensure()
        return self.database.read(plan, *args, **kwargs)

    async def aread(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan that writes nothing, on the running loop."""
        await self.readiness.aensure()
        return await self.database.aread(plan, *args, **kwargs)
