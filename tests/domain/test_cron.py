"""Cron expressions: what they match, in UTC; clock changes are in `test_cron_zones`."""

from datetime import UTC, datetime

import pytest

from windlass import InvalidOptionError
from windlass.domain.clock import from_micros, micros
from windlass.domain.cron import Cron

MONDAY = datetime(2026, 11, 16, 13, 30, 15, tzinfo=UTC)


def after(expression: str, moment: datetime = MONDAY, zone: str = "UTC") -> datetime:
    found = Cron.parse(expression).next_after(micros(moment), zone)
    assert found is not None
    return from_micros(found)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 2 * * *", datetime(2026, 11, 17, 2, tzinfo=UTC)),
        ("*/15 * * * *", datetime(2026, 11, 16, 13, 45, tzinfo=UTC)),
        ("30 13 * * *", datetime(2026, 11, 17, 13, 30, tzinfo=UTC)),
        ("0 0 1 1 *", datetime(2027, 1, 1, tzinfo=UTC)),
        ("0 12 * * 0", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("0 12 * * 7", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("0 12 * * sun", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("0 12 13 * fri", datetime(2026, 11, 20, 12, tzinfo=UTC)),  # either of both
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
        ("  0   2 * *  * ", datetime(2026, 11, 17, 2, tzinfo=UTC)),
    ],
)
def test_the_next_time_by_unix_rules(expression: str, expected: datetime):
    """J9.1: strictly behind the given moment."""
    assert after(expression) == expected


@pytest.mark.parametrize("expression", ["", "0 2 * *", "0 2 * * * * * *", 2, None, "0 " * 600])
def test_a_wrong_number_of_fields_is_refused(expression: str):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match="expected a cron expression") as caught:
        Cron.parse(expression)
    assert "it needs 5 fields" in str(caught.value)
    assert repr(expression) in str(caught.value)
