"""What two executions differ in: the outputs of their steps, from their logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Difference(StrEnum):
    """How the outputs of a step compare; the value is what JSON shows."""

    EQUAL = "equal"
    SAME_COUNT = "same_count"
    """Both gave as many items; the items themselves are not compared."""
    DIFFERENT = "different"
    FIRST_ONLY = "first_only"
    SECOND_ONLY = "second_only"


class StepOutput(NamedTuple):
    """What a step of an execution gave."""

    value: Any
    text: str | None = None
    """Its stored form."""
    counted: bool = False
    """Whether the value is a number of items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDifference:
    """The outputs of one step in two executions; from `app.executions.diff(first, second)`."""

    step: str
    difference: Difference
    counted: bool
    """Whether it gave items: the values are how many."""
    first: Any
    second: Any


def differences(first: Mapping[str, StepOutput], second: Mapping[str, StepOutput]) -> list[StepDifference]:
    """Compare outputs by the names of their steps, in the order of the first execution."""
    return [
        StepDifference(
            step=name,
            difference=_compared(first.get(name), second.get(name)),
            counted=any(one.counted for one in (first.get(name), second.get(name)) if one is not None),
            first=None if name not in first else first[name].value,
            second=None if name not in second else second[name].value,
        )
        for name in dict.fromkeys((*first, *second))
    ]


def _compared(first: StepOutput | None, second: StepOutput | None) -> Difference:
    if second is None:
        return Difference.FIRST_ONLY
    if first is None:
        return Difference.SECOND_ONLY
    if first.counted and second.counted:
        return Difference.SAME_COUNT if first.value == second.value else Difference.DIFFERENT
    same = first.counted == second.counted and (_same_text(first, second) or _equal(first.value, second.value))
    return Difference.EQUAL if same else Difference.DIFFERENT


def _same_text(first: StepOutput, second: StepOutput) -> bool:
    return first.text is not None and first.text == second.text


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except Exception:  # noqa: BLE001 - users' classes
        return False
