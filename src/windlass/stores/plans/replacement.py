"""The plan that stores a job in place of one that has not started."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from windlass.domain.admission import NOT_STARTED, Admission, admit
from windlass.domain.job import Conflict, NewJob, SubmittedJob
from windlass.domain.lanes import read_lane, resource_gate
from windlass.domain.states import Move
from windlass.errors import DuplicateBusinessKeyError, JobNotFoundError, JobStateError, UnknownResourceError
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import jobs, reads
from windlass.stores.plans.moves import lock_live


class Replaced(NamedTuple):
    """The result of a replacement: the old job, unless an earlier job is returned instead, and the new one."""

    old: MovedJobs
    new: SubmittedJob


def replace(dialect: Dialect, old: str, new: NewJob, follow_ups: FollowUps = ()) -> Plan[Replaced]:
    """Store a job in place of one that has not started, in one transaction."""
    row = next(iter((yield from lock_live(dialect, [old], Move.CANCEL))), None)
    if row is None:
        if (yield from reads.get(dialect, old)) is None:
            raise JobNotFoundError(UUID(old))
        raise JobStateError(UUID(old), "it has ended, so there is nothing to replace; enqueue the new call")
    if row.left.value not in NOT_STARTED:
        raise JobStateError(UUID(old), "it is running; cancel it, or let it end, and enqueue the new call")
    yield from _check_resource(dialect, new)
    admission = yield from _admitted(dialect, old, new)
    (answer,) = admission.answers
    if isinstance(answer, Conflict):
        raise DuplicateBusinessKeyError(answer.key, UUID(answer.holder), answer.holder_kind)
    if not admission.rows:
        return Replaced(MovedJobs([]), answer[0])
    yield Step("insert_queue", rows=[{"name": new.queue}])
    admitted = admission._replace(replaced={**admission.replaced, old: new.id})
    superseded = yield from jobs.store(dialect, admitted, f" {new.queue}:{new.priority}", follow_ups)
    return Replaced(superseded, answer[0])


def _check_resource(dialect: Dialect, new: NewJob) -> Plan[None]:
    resource = read_lane(new.lane).resource
    if resource is None:
        return
    if not (yield Step("known_gates", {"names": dialect.names([resource_gate(resource)])})):
        raise UnknownResourceError(resource)


def _admitted(dialect: Dialect, old: str, new: NewJob) -> Plan[Admission]:
    """Admit the new job by its keys, except that the old job's business key is about to be free."""
    known = (yield from dialect.find_keys([new.idempotency_key])) if new.idempotency_key else {}
    holders = (yield from dialect.find_holders([new.business_key])) if new.business_key else {}
    return admit([[new]], known, {key: holder for key, holder in holders.items() if holder.id != old})
