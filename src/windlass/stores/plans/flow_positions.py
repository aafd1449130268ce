"""Plans that store the positions of new jobs in their flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from windlass.domain.job import NewJob
from windlass.stores.columns import FLOW
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step

_STORED: Final = len(FLOW) - 1
"""Number of fields of a position that are stored."""


def store(dialect: Dialect, rows: Sequence[NewJob]) -> Plan[None]:
    """Store the positions of new jobs in their flows, and the groups that they count for."""
    positions = [(row.id, row.position) for row in rows if row.position is not None]
    if not positions:
        return
    yield Step("insert_flow", {"rows": json_text([(job_id, *position[:_STORED]) for job_id, position in positions])})
    totals = Counter(
        (position.group_id, position.flow_id) for _, position in positions if position.group_id is not None
    )
    if totals:
        groups = [(group, flow, total, 0, 0) for (group, flow), total in totals.items()]
        yield Step("insert_groups", {"rows": json_text(groups)})
    batches = [job_id for job_id, position in positions if position.batch]
    if batches:
        yield Step("insert_batches", {"ids": dialect.ids(batches)})
