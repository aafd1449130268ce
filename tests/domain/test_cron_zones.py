"""Cron expressions at clock changes, by hand; `test_cron_walk` compares all of 16 years."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from windlass.domain.clock import from_micros, micros
from windlass.domain.cron import Cron


def ticks(expression: str, zone: str, start: datetime, count: int) -> list[str]:
    """The next ticks behind a wall time, as the clock of the zone shows them."""
    cron = Cron.parse(expression)
    at: int | None = micros(start.replace(tzinfo=ZoneInfo(zone)))
    found = []
    for _ in range(count):
        assert at is not None
        at = cron.next_after(at, zone)
        assert at is not None
        found.append(f"{from_micros(at).astimezone(ZoneInfo(zone)):%d %H:%M %z}")
    return found


def day(year: int, month: int, number: int, hour: int = 0, *, fold: int = 0) -> datetime:
    return datetime(year, month, number, hour, fold=fold)  # noqa: DTZ001 - the zone is put in above


def test_a_fixed_time_in_a_gap_fires_when_the_gap_ends():
    """J9.1: and several in one gap fire once."""
    assert ticks("30 2 * * *", "Europe/Berlin", day(2027, 3, 27), 3) == [
        "27 02:30 +0100", "28 03:00 +0200", "29 02:30 +0200",
    ]  # fmt: skip
    assert ticks("0,10,50 2 * * *", "Europe/Berlin", day(2027, 3, 28), 2) == ["28 03:00 +0200", "29 02:00 +0200"]
    assert ticks("30 2,3 * * *", "Europe/Berlin", day(2027, 3, 28), 2) == ["28 03:00 +0200", "28 03:30 +0200"]


def test_a_fixed_time_that_is_the_end_of_a_gap_fires_once():
    """J9.1."""
    assert ticks("0,30 2-3 * * *", "Europe/Berlin", day(2027, 3, 28), 3) == [
        "28 03:00 +0200", "28 03:30 +0200", "29 02:00 +0200",
    ]  # fmt: skip


def test_a_fixed_time_in_an_overlap_fires_the_first_time():
    """J9.1: also if it is asked for between the two."""
    assert ticks("30 2 * * *", "Europe/Berlin", day(2027, 10, 31), 2) == ["31 02:30 +0200", "01 02:30 +0100"]
    assert ticks("30 2 * * *", "Europe/Berlin", day(2027, 10, 31, 2, fold=1), 1) == ["01 02:30 +0100"]
    assert ticks("59 2 * * *", "Europe/Berlin", day(2027, 10, 31, 2, fold=1), 1) == ["01 02:59 +0100"]
    assert ticks("0 3 * * *", "Europe/Berlin", day(2027, 10, 31, 2, fold=1), 1) == ["31 03:00 +0100"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 * * * *", ["28 01:30 +0100", "28 03:30 +0200"]),
        ("0 30 * * * ?", ["28 01:30 +0100", "28 03:30 +0200"]),
        ("*/30 2 * * *", ["29 02:00 +0200", "29 02:30 +0200"]),
    ],
)
def test_a_time_that_begins_with_a_star_has_no_tick_in_a_gap(expression: str, expected: list[str]):
    """J9.1: what does not name a time of day follows real time."""
    assert ticks(expression, "Europe/Berlin", day(2027, 3, 28, 1), 2) == expected


def test_a_time_that_begins_with_a_star_fires_in_both_passes_of_an_overlap():
    """J9.1."""
    assert ticks("30 * * * *", "Europe/Berlin", day(2027, 10, 31, 1), 4) == [
        "31 01:30 +0200", "31 02:30 +0200", "31 02:30 +0100", "31 03:30 +0100",
    ]  # fmt: skip
    assert ticks("*/30 2 * * *", "Europe/Berlin", day(2027, 10, 31), 5) == [
        "31 02:00 +0200", "31 02:30 +0200", "31 02:00 +0100", "31 02:30 +0100", "01 02:00 +0100",
    ]  # fmt: skip


def test_a_change_by_half_an_hour():
    """J9.1: Lord Howe goes from 02:00 to 02:30 and back to 01:30."""
    zone = "Australia/Lord_Howe"
    assert ticks("15 2 * * *", zone, day(2027, 10, 3), 2) == ["03 02:30 +1100", "04 02:15 +1100"]
    assert ticks("45 1 * * *", zone, day(2027, 4, 4), 2) == ["04 01:45 +1100", "05 01:45 +1030"]
    assert ticks("*/15 1 * * *", zone, day(2027, 4, 4, 1), 6) == [
        "04 01:15 +1100", "04 01:30 +1100", "04 01:45 +1100", "04 01:30 +1030", "04 01:45 +1030", "05 01:00 +1030",
    ]  # fmt: skip


def test_a_change_at_midnight():
    """J9.1: Havana has no 00:00 on one Sunday, and two on another."""
    zone = "America/Havana"
    assert ticks("0 0 * * *", zone, day(2027, 3, 13, 12), 2) == ["14 01:00 -0400", "15 00:00 -0400"]
    assert ticks("0 0 * * *", zone, day(2027, 11, 6, 12), 2) == ["07 00:00 -0400", "08 00:00 -0500"]
    assert ticks("0 * * * *", zone, day(2027, 11, 6, 23), 3) == ["07 00:00 -0400", "07 00:00 -0500", "07 01:00 -0500"]


def test_a_skipped_day_fires_at_the_next_midnight():
    """J9.1: there was no 30 December 2011 in Samoa."""
    zone = "Pacific/Apia"
    assert ticks("0 12 * * *", zone, day(2011, 12, 29), 3) == ["29 12:00 -1000", "31 00:00 +1400", "31 12:00 +1400"]
    assert ticks("0 6,18 30 12 *", zone, day(2011, 12, 1), 2) == ["31 00:00 +1400", "30 06:00 +1400"]
    assert ticks("0 0 0 ? * FRI", zone, day(2011, 12, 28), 2) == ["31 00:00 +1400", "06 00:00 +1400"]
    assert ticks("0 */12 * * *", zone, day(2011, 12, 29), 3) == ["29 12:00 -1000", "31 00:00 +1400", "31 12:00 +1400"]
    assert ticks("*/30 12 30 * *", zone, day(2011, 12, 1), 1) == ["30 12:00 +1400"]  # of January


def test_two_zones_have_two_times():
    """J9.1."""
    at = micros(datetime(2027, 7, 1, tzinfo=UTC))
    cron = Cron.parse("0 9 * * *")
    assert cron.next_after(at, "UTC") == micros(datetime(2027, 7, 1, 9, tzinfo=UTC))
    assert cron.next_after(at, "Asia/Kolkata") == micros(datetime(2027, 7, 1, 3, 30, tzinfo=UTC))
