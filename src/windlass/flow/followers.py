"""Followers: the end of a job releases, cancels and counts what depends on it, in the transaction that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from windlass.domain.batch import BATCH_TARGET, NO_RULES, BatchRules
from windlass.domain.branches import PREDICATE_FAILED, decide
from windlass.domain.dependencies import NOT_CHOSEN, EndedStep, Follows
from windlass.domain.ended import Effects, Ended
from windlass.domain.rhythm import Every
from windlass.domain.states import Move
from windlass.errors import SerializationError
from windlass.feature import Feature, NodeTools
from windlass.flow.check_duty import FlowChecks
from windlass.flow.completion import FlowCompletion
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, with_payloads
from windlass.stores.plan import Plan
from windlass.stores.plans import flow_branches, flow_revival, flows
from windlass.stores.plans.leases import FLOWS
from windlass.submission.stored_options import FLOW_IN_TEXT, StoredFlow, from_text

_ENDS: Final = frozenset({Move.SUCCEED, Move.FAIL, Move.CANCEL, Move.GIVE_UP})
_REVIVALS: Final = frozenset({Move.RETRY})


def feature(check_interval: float) -> Feature:
    """Return the dependencies of jobs on each other as a feature."""

    def duties(tools: NodeTools) -> Sequence[FlowChecks]:
        return (FlowChecks(tools.lease(FLOWS, Every(check_interval)), tools),)

    def services(tools: NodeTools) -> Sequence[FlowCompletion]:
        return (FlowCompletion(tools),)

    # Last of all follow-ups: the rows of groups are locked for the shortest time.
    follow_ups = (FollowUp(_ENDS, has_dependents, _follow), FollowUp(_REVIVALS, _in_flow, _revive))
    return Feature("flows", follow_ups, duties, services)


def has_dependents(ended: Ended) -> bool:
    """Return whether other jobs may depend on a job, as far as known without reading its options.

    A cascade has decided what depends on the jobs that it canceled, and has counted them.
    """
    if ended.in_cascade:
        return False
    if ended.in_flow is not None:
        return ended.in_flow
    if ended.payload is None:
        return True
    options = ended.payload.options
    return isinstance(options, str) and FLOW_IN_TEXT in options


def _follow(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    loaded = yield from with_payloads(dialect, ended)
    found = [(job, flow) for job in loaded if (flow := _flow_of(job)) is not None]
    stopped = [job.job_id for job, flow in found if flow.guard is not None and _was_not_chosen(job)]
    causes = (yield from flow_branches.set_causes(dialect, stopped)) if stopped else {}
    steps = [_step(job, flow, causes.get(job.job_id)) for job, flow in found if flow.leads or flow.group is not None]
    batches = {job.job_id: _rules(job) for job in loaded if job.target == BATCH_TARGET}
    return (yield from flows.follow(dialect, steps, batches))


def _rules(batch: Ended) -> BatchRules:
    """Return the rules of a batch. It is canceled: nothing else ends one here."""
    flow = _flow_of(batch)
    return NO_RULES if flow is None or flow.batch is None else flow.batch


def _was_not_chosen(job: Ended) -> bool:
    """Return whether the guard of a job has ended it."""
    return job.move is Move.CANCEL and job.reason in {NOT_CHOSEN, PREDICATE_FAILED}


def _step(job: Ended, flow: StoredFlow, cause: str | None) -> EndedStep:
    branches = decide(flow.branches, job.status, job.judgements) if flow.branches else None
    reason = None if cause is None else NOT_CHOSEN  # also behind a branch whose predicate failed
    return EndedStep(job.job_id, job.status, _ways(flow.leads), flow.group, cause, reason, branches)


@lru_cache(maxsize=16)
def _ways(leads: tuple[int, ...]) -> frozenset[Follows]:
    return frozenset(way for way in Follows if way in leads)  # of others, which damage may have left, nothing is known


def _flow_of(ended: Ended) -> StoredFlow | None:
    if ended.payload is None:
        return None
    try:
        return from_text(ended.payload.options).flow
    except SerializationError:  # damaged: the checks find its followers
        return None


def _in_flow(ended: Ended) -> bool:
    return bool(ended.in_flow)


def _revive(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    yield from flow_revival.revive(dialect, [job.job_id for job in ended])
    return Effects()
