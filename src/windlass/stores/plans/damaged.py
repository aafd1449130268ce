"""Plans for damaged rows: jobs that can neither run nor fail are paused or removed."""

from __future__ import annotations

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


def pause(dialect: Dialect, job_id: str, fence: int) -> Plan[bool]:
    """Pause a claimed job without its history, so that no value can be refused; return False if it is missing."""
    del dialect
    row = {"id": job_id, "fence": fence}
    yield Step("release_permit", row)
    count: int = yield Step("pause_damaged", row)
    return count == 1


def remove_orphan(dialect: Dialect, job_id: str, fence: int) -> Plan[bool]:
    """Remove the live row of a job that has no other; return False if it has one, or another claim owns it."""
    del dialect
    row = {"id": job_id, "fence": fence, "holder_id": job_id}
    yield Step("release_permit", row)
    count: int = yield Step("remove_orphan", row)
    if count:
        yield Step("delete_live_key", row)
    return count == 1
