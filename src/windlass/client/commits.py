"""What verbs do around their commits: publish them, and finish what is too much for one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from windlass.domain.ended import NO_EFFECTS
from windlass.publisher import Publisher
from windlass.runtime.verbs import Verb, sleep
from windlass.stores.access import Access
from windlass.stores.database import P, PlanFunction
from windlass.stores.ending import FollowUps, MovedJobs
from windlass.stores.plans import flow_revival, flows
from windlass.submission.cascades import carry_out

T = TypeVar("T")

PAUSE: Final = 0.05
"""Seconds between two looks at a cascade that another process carries out."""


def publish(access: Access, publisher: Publisher, moved: MovedJobs, follow_ups: FollowUps) -> Verb[int]:
    """Publish jobs that a verb has ended or revived, and carry out the rest of its work; return how many jobs."""
    count = publisher.publish(moved.ended, moved.effects)
    yield from carry_out(access, publisher.publish, moved.effects.unfinished, follow_ups)
    return count


def revive(
    access: Access,
    publisher: Publisher,
    follow_ups: FollowUps,
    plan: PlanFunction[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Verb[T]:
    """Run a plan that starts jobs over, after the work that must be done before it.

    A cascade that still cancels their followers is carried out. More followers than the plan can revive at once are
    revived before it.
    """
    ids: Sequence[str] = ()
    while True:
        try:
            while ids and (yield from access.run(flow_revival.revive_some, ids)):
                pass
            return (yield from access.run(plan, *args, **kwargs))
        except flow_revival.LargeRevivalError as large:
            ids = large.ids
        except flow_revival.UnfinishedCascadeError as cascade:
            effects = yield from access.run(flows.carry_on, cascade.unfinished, follow_ups)
            publisher.publish((), effects)
            if effects is NO_EFFECTS:  # another process carries it out
                yield from sleep(PAUSE)
