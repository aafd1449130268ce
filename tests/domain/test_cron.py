"""Cron expressions of five fields."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from windlass import InvalidOptionError
from windlass.domain.cron import Cron

MONDAY = datetime(2026, 11, 16, 13, 30, 15, tzinfo=UTC)


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
    """J9.1, as far as duties need it: strictly behind the given moment, in UTC."""
    assert Cron(expression).after(MONDAY) == expected
    elsewhere = MONDAY.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert Cron(expression).after(elsewhere) == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("61 2 * * *", "its minute '61' is none"),
        ("0 24 * * *", "its hour '24' is none"),
        ("0 2 32 * *", "its day-of-month '32' is none"),
        ("0 2 * 13 *", "its month '13' is none"),
        ("0 2 * * 8", "its day-of-week '8' is none"),
        ("0 2 * * frog", "its day-of-week 'frog' is none"),
        ("0 2/0 * * *", "its hour '2/0' is none"),
        ("0 2 31 2 *", "it never fires"),
        ("0 2 * *", "it needs 5 fields"),
        ("0 0 2 * * *", "it needs 5 fields"),
        ("", "it needs 5 fields"),
        (2, "it needs 5 fields"),
    ],
)
def test_a_bad_expression_is_refused_where_it_is_written(expression: str, says: str):
    """J9.1: naming the field."""
    with pytest.raises(InvalidOptionError, match="expected a cron expression") as caught:
        Cron(expression)
    assert says in str(caught.value)
    assert repr(expression) in str(caught.value)
