"""Helpers of the contracts of gates, limits and circuits."""

from __future__ import annotations

from windlass.domain.lanes import Lane
from windlass.stores.plans import limits
from windlass.stores.plans.limits import Limit
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench

STRIPE = Lane(resource="stripe").text
GATEWAY = Lane(circuit="gateway").text


class GatedContract(StoreContract):
    """Sets gates up, and counts what they have in use."""

    def _resource(self, bench: Workbench, cap: int | None, rate: int | None = None) -> None:
        limit = Limit(cap, rate, None if rate is None else SECOND, 5 * SECOND)
        bench.database.run(limits.configure_resource, "stripe", limit)

    def _limit(self, bench: Workbench, queue: str, cap: int | None) -> None:
        bench.database.run(limits.limit_queue, queue, Limit(cap, None, None))

    def _in_use(self, bench: Workbench, prefix: str) -> int:
        return sum(row.gate.in_use for row in bench.database.read(limits.gates, prefix))
