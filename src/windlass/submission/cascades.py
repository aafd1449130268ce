"""Work that a caller's commit has not finished: carried out in later transactions, before its verb returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass.domain.ended import Effects, Ended, Unfinished
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb
from windlass.stores.access import Access
from windlass.stores.ending import FollowUps
from windlass.stores.plans import operations

Publish = Callable[[Sequence[Ended], Effects], object]


def carry_out(access: Access, publish: Publish, unfinished: Unfinished, follow_ups: FollowUps) -> Verb[int]:
    """Carry out the rest of cascades and counts, part by part, and publish each; return how many jobs it moved."""
    moved = 0
    while unfinished:
        if unfinished.operations:
            reached("operation.after_commit")
        carried = yield from access.run(operations.carry_on, unfinished, follow_ups)
        publish(*carried)
        moved += len(carried.ended)
        unfinished = carried.effects.unfinished
    return moved
