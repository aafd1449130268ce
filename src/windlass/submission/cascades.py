"""What a caller's commit has left to be written by transactions of its own, carried out before its verb returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass.domain.ended import Effects, Ended, Unfinished
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb
from windlass.stores.access import Access
from windlass.stores.plans import flows

Publish = Callable[[Sequence[Ended], Effects], object]


def carry_out(access: Access, publish: Publish, left: Unfinished) -> Verb[None]:
    """Carry out what is left of cascades and counts, part by part, and publish each part."""
    while left:
        if left.operations:
            reached("operation.after_commit")
        effects = yield from access.run(flows.carry_on, left)
        publish((), effects)
        left = effects.unfinished
