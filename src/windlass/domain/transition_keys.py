"""Transition keys: they name one attempt at one step of an execution, and the item after an expansion."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from windlass.domain.item_paths import readable

_KEY: Final = re.compile(r"[^:]+:([0-9]+):([0-9]+)(?::(.+))?")


class TransitionKey(NamedTuple):
    """The parts of a transition key."""

    step: int
    attempt: int
    item: str | None
    """Position of the item, e.g. `3.0`; None before an expansion."""


def transition_key(execution_id: str, step: int, attempt: int, path: str = "") -> str:
    """Return `executionId:stepIndex:attempt[:item]`."""
    return ":".join(filter(None, (execution_id, str(step), str(attempt), readable(path))))


def read_transition_key(text: str) -> TransitionKey | None:
    """Return the parts of a transition key; None if it is none."""
    found = _KEY.fullmatch(text)
    return None if found is None else TransitionKey(int(found[1]), int(found[2]), found[3])
