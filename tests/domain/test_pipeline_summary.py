"""The triage rules of pipelines."""

import pytest

from windlass.domain.pipeline_summary import HourlyCount, TriageRule, triage

NONE = HourlyCount(last=0, before=0)
UP = HourlyCount(last=12, before=9)
DOWN = HourlyCount(last=9, before=12)


@pytest.mark.parametrize(
    ("rejected", "dead", "rules"),
    [
        (NONE, NONE, ["nothing rises"]),
        (UP, NONE, ["rejects rise: data quality or business-rule drift"]),
        (DOWN, UP, ["DLQ rises: dependency or systemic failure"]),
        (
            UP,
            UP,
            ["DLQ rises: dependency or systemic failure", "rejects rise: data quality or business-rule drift"],
        ),
        (DOWN, DOWN, ["nothing rises"]),
    ],
)
def test_rule_follows_the_channels_that_rise(rejected: HourlyCount, dead: HourlyCount, rules: list[str]):
    """P10.1, P10.2: the table at the top of the specification."""
    assert [rule.words for rule in triage(rejected, dead)] == rules


@pytest.mark.parametrize(
    ("last", "before", "bounded", "rises", "falls"),
    [
        (1, 0, (False, False), True, False),
        (0, 1, (False, False), False, True),
        (100, 100, (False, False), False, False),
        (110, 100, (False, False), False, False),
        (111, 100, (False, False), True, False),
        (10_000, 20, (True, False), True, False),
        (20, 10_000, (False, True), False, True),
        (9_000, 1, (True, True), False, False),
    ],
)
def test_count_rises_if_it_grows_by_more_than_a_tenth(
    last: int, before: int, bounded: tuple[bool, bool], rises: bool, falls: bool
):
    """P10.1: what was not counted to its end in both hours cannot be compared."""
    count = HourlyCount(last=last, before=before, last_bounded=bounded[0], before_bounded=bounded[1])
    assert (count.rises, count.falls) == (rises, falls)


def test_every_rule_has_a_description():
    """P10.2."""
    assert all(rule.words for rule in TriageRule)
