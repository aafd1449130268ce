"""What two executions differ in."""

import pytest

from windlass.domain.output_differences import StepOutput, differences


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("cannot compare")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        (StepOutput(1), StepOutput(1), "equal"),
        (StepOutput(1), StepOutput(2), "different"),
        (StepOutput({"a": 1, "b": 2}, "ab"), StepOutput({"b": 2, "a": 1}, "ba"), "equal"),
        (StepOutput(Unequal(), "same"), StepOutput(Unequal(), "same"), "equal"),
        (StepOutput(Unequal(), "one"), StepOutput(Unequal(), "other"), "different"),
        (StepOutput(5, counted=True), StepOutput(5, counted=True), "same_count"),
        (StepOutput(5, counted=True), StepOutput(6, counted=True), "different"),
        (StepOutput(5, counted=True), StepOutput(5), "different"),
        (StepOutput(1), None, "first_only"),
        (None, StepOutput(1), "second_only"),
    ],
)
def test_outputs_of_a_step_are_compared(first: StepOutput | None, second: StepOutput | None, difference: str):
    """P2.3: by value, or by their stored form."""
    (found,) = differences({} if first is None else {"price": first}, {} if second is None else {"price": second})
    assert (found.step, found.difference) == ("price", difference)


def test_steps_are_in_the_order_of_the_first_then_those_of_the_second_alone():
    """P2.3."""
    found = differences({"a": StepOutput(1), "c": StepOutput(1)}, {"b": StepOutput(1), "c": StepOutput(1)})
    assert [one.step for one in found] == ["a", "c", "b"]
