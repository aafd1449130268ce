"""The extension point for the end of a job: follow-ups, written by the transaction in which the job ends.

Every plan that ends or revives jobs calls `end` once it has moved them. Jobs that a follow-up cancels because of them,
such as followers in a flow, are given to the follow-ups as well; plans that carry on such a cascade in a later
transaction call `end_canceled`. There are three exceptions. Canceling a paused dead letter ends nothing: its follow-ups
were written when the job failed. The job of a batch, which its last child ends and a retry of its children revives
(`stores.plans.batch_ends`), has neither callbacks nor a dead letter, and its followers are decided there. Followers
that a retry revives have only been canceled, so the flow follow-up of that retry writes all that belongs to it.

A feature registers its follow-ups by the moves they belong to; whatever they write is committed with the move, or not
at all. A plan may be restarted, so a follow-up keeps no state of its own: it returns its effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.states import Move
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan


class FollowUp(NamedTuple):
    """A write that belongs to the end, or the revival, of some jobs."""

    moves: frozenset[Move]
    """The moves that it follows."""
    concerns: Callable[[Ended], bool]
    """Whether it has something to write for a job; called before the transaction, so it reads nothing.

    The completer does not call it for jobs that succeed, stored no options and called no service.
    """
    plan: Callable[[Dialect, Sequence[Ended]], Plan[Effects]]
    """Given the jobs that it concerns: each once, also when a commit whose answer was lost is tried again.

    Jobs that it cancels itself are returned in `Effects.canceled`, with `Ended.in_cascade`, and get their follow-ups.
    """


FollowUps = Sequence[FollowUp]


class MovedJobs(NamedTuple):
    """Jobs that a plan has ended or revived, and what followed."""

    ended: list[Ended]
    effects: Effects = NO_EFFECTS


def is_followed(ended: Ended, follow_ups: FollowUps) -> bool:
    """Return whether any follow-up concerns a job."""
    move = ended.move
    for one in follow_ups:  # noqa: SIM110 - a generator in `any` took a tenth of what flows cost a flush
        if move in one.moves and one.concerns(ended):
            return True
    return False


def end(dialect: Dialect, ended: Sequence[Ended], follow_ups: FollowUps) -> Plan[Effects]:
    """Write what belongs to the end of these jobs, which the caller has moved in this transaction."""
    effects = NO_EFFECTS
    for one in follow_ups:
        concerned = [job for job in ended if job.move in one.moves and one.concerns(job)]
        if concerned:
            effects |= yield from one.plan(dialect, concerned)
    return (yield from end_canceled(dialect, effects, follow_ups))


def end_canceled(dialect: Dialect, effects: Effects, follow_ups: FollowUps) -> Plan[Effects]:
    """Write what belongs to the end of the jobs that were canceled in this transaction; return all effects.

    The feature that canceled them has done its own part before (`Ended.in_cascade`).
    """
    if not effects.canceled or not follow_ups:
        return effects
    return effects | (yield from end(dialect, effects.canceled, follow_ups))


def with_payloads(dialect: Dialect, ended: Sequence[Ended]) -> Plan[list[Ended]]:
    """Return the same jobs with their payloads; missing ones are read at once."""
    missing = [job.job_id for job in ended if job.payload is None]
    if not missing:
        return list(ended)
    payloads = yield from dialect.load(missing)
    return [job if job.payload is not None else job._replace(payload=payloads.get(job.job_id)) for job in ended]
