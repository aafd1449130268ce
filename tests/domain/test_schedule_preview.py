"""The preview of a schedule's times."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from windlass.domain.clock import micros
from windlass.domain.schedule_plan import SchedulePlan, parse_times
from windlass.domain.schedule_preview import preview

BERLIN = "Europe/Berlin"


def shown(expression: str, zone: str, start: str, count: int) -> list[tuple[str, str]]:
    begin = micros(datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone)))
    plan = SchedulePlan(times=parse_times(expression), zone=zone, anchor=begin)
    ticks = preview(plan, begin, count)
    assert all(micros(tick.wall) == tick.at_us for tick in ticks)
    return [(f"{tick.wall:%d %H:%M}", tick.note) for tick in ticks]


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        (
            "30 2 * * *", BERLIN, "2027-03-27",
            [("27 02:30", ""), ("28 03:00", "moved from 02:30, which does not exist")],
        ),
        ("0 3 * * *", BERLIN, "2027-03-28", [("28 03:00", ""), ("29 03:00", "")]),
        (
            "30 2 * * *", BERLIN, "2027-10-31",
            [("31 02:30", "02:30 occurs twice: fires the first time only"), ("01 02:30", "")],
        ),
        (
            "*/30 * * * *", BERLIN, "2027-03-28T01:00",
            [("28 01:30", ""), ("28 03:00", "none from 02:00 to 03:00: the clock goes forward"), ("28 03:30", "")],
        ),
        (
            "30 * * * *", BERLIN, "2027-10-31T01:30",
            [("31 02:30", "02:30 occurs twice: the first time"), ("31 02:30", "02:30 occurs twice: the second time"),
             ("31 03:30", "")],
        ),
        (
            "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00",
            [("31 00:00", "moved from 2011-12-30 12:00, which does not exist"), ("31 12:00", "")],
        ),
        ("every(hours=1)", BERLIN, "2027-03-28T01:00", [("28 03:00", ""), ("28 04:00", "")]),
    ],
)  # fmt: skip
def test_ticks_that_a_clock_change_moves_drops_or_repeats_are_marked(
    expression: str, zone: str, start: str, expected: list[tuple[str, str]]
):
    """J9.1."""
    assert shown(expression, zone, start, len(expected)) == expected


def test_a_preview_ends_with_the_last_tick():
    """J9.1."""
    assert shown("0 0 12 1 1 ? 2027,2028", "UTC", "2026-01-01", 10) == [("01 12:00", ""), ("01 12:00", "")]
    assert shown("0 0 12 1 1 ? 2027", "UTC", "2028-01-01", 10) == []


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_preview_ends_with_the_calendar(zone: str):
    """J9.1: it begins no earlier, too."""
    early = shown("30 2 * * *", zone, "0001-01-02", 1)
    assert [note for _, note in early] == [""]
    assert len(shown("every(weeks=5000)", zone, "9800-01-01", 5)) == 1
    assert shown("*/30 * * * *", zone, "9998-01-01", 5) == []
