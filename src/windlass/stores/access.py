"""The store as applications use it: its schema is created or checked before the first plan runs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

from windlass.runtime.verbs import Verb, off_loop
from windlass.stores.database import Database, P, PlanFunction
from windlass.stores.migrate import Readiness

T = TypeVar("T")


class Access(NamedTuple):
    """Runs plans as steps of verbs."""

    database: Database
    readiness: Readiness

    def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> Verb[T]:
        """Run a plan in a transaction that is committed."""
        if not self.readiness.is_ready:
            yield from self.ready()
        result: T = yield self.database.run, self.database.arun, (partial(plan, **kwargs) if kwargs else plan, *args)
        return result

    def read(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> Verb[T]:
        """Run a plan that writes nothing."""
        if not self.readiness.is_ready:
            yield from self.ready()
        result: T = yield self.database.read, self.database.aread, (partial(plan, **kwargs) if kwargs else plan, *args)
        return result

    def ready(self) -> Verb[None]:
        """Create or check the schema, once."""
        if not self.readiness.is_ready:
            yield from off_loop(self.readiness.ensure)
