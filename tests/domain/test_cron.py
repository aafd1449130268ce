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


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 2 * * ?", datetime(2026, 11, 17, 2, tzinfo=UTC)),
        ("*/10 * * * * *", datetime(2026, 11, 16, 13, 30, 20, tzinfo=UTC)),
        ("15 30 13 * * ?", datetime(2026, 11, 17, 13, 30, 15, tzinfo=UTC)),
        ("16 30 13 * * ?", datetime(2026, 11, 16, 13, 30, 16, tzinfo=UTC)),
        ("0 0 12 ? * 1", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("0 0 12 ? * MON", datetime(2026, 11, 23, 12, tzinfo=UTC)),
        ("0 0 12 L * ?", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("0 0 12 31W * ?", datetime(2026, 12, 31, 12, tzinfo=UTC)),
        ("0 0 0 29 2 ?", datetime(2028, 2, 29, tzinfo=UTC)),
        ("0 0 0 29 2 ? 2029/1", datetime(2032, 2, 29, tzinfo=UTC)),
        ("0 0 0 ? 2 MON#5", datetime(2044, 2, 29, tzinfo=UTC)),
        ("0 0 0 1 1 ? 2031,2029", datetime(2029, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_next_time_by_quartz_rules(expression: str, expected: datetime):
    """J9.1."""
    assert after(expression) == expected


def test_a_century_that_is_no_leap_year_is_skipped():
    """J9.1."""
    assert after("0 0 29 2 *", datetime(2097, 1, 1, tzinfo=UTC)) == datetime(2104, 2, 29, tzinfo=UTC)


def test_an_expression_whose_years_are_over_has_no_next_time():
    """J9.1."""
    once = Cron.parse("0 0 12 1 1 ? 2030")
    noon = micros(datetime(2030, 1, 1, 12, tzinfo=UTC))
    assert once.next_after(noon - 1, "UTC") == noon
    assert once.next_after(noon, "UTC") is None
    assert once.next_after(micros(datetime(2031, 1, 1, tzinfo=UTC)), "UTC") is None


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_the_ends_of_the_calendar_raise_no_error(zone: str):
    """J9.1: a damaged row must not stop the rest."""
    cron = Cron.parse("0 0 * * *")
    assert cron.next_after(2**62, zone) is None
    assert cron.next_after(-(2**62), zone) is not None


def test_an_expression_is_kept_as_written_but_for_spaces():
    """J9.1."""
    assert str(Cron.parse(" 0  2 * *  mon")) == "0 2 * * mon"


@pytest.mark.parametrize("expression", ["", "0 2 * *", "0 2 * * * * * *", 2, None, "0 " * 600])
def test_a_wrong_number_of_fields_is_refused(expression: str):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match="expected a cron expression") as caught:
        Cron.parse(expression)
    assert "it needs 5 fields" in str(caught.value)
    assert repr(expression) in str(caught.value)
