"""The days of cron expressions, month by month."""

import pytest

from windlass.domain.cron_days import Days


@pytest.mark.parametrize(
    ("day", "weekday", "year", "month", "expected"),
    [
        ("*", "*", 2027, 2, list(range(1, 29))),
        ("13", "5", 2026, 11, [6, 13, 20, 27]),  # the 13th is a Friday
        ("1", "0", 2026, 11, [1, 8, 15, 22, 29]),
        ("13", "1", 2026, 12, [7, 13, 14, 21, 28]),  # either
        ("*/2", "1", 2026, 11, [9, 23]),  # begins with *: both
        ("1-7", "*/6", 2026, 11, [1, 7]),
        ("31", "*", 2026, 11, []),
        ("29", "*", 2028, 2, [29]),
        ("29", "*", 2027, 2, []),
    ],
)
def test_the_days_of_a_month_by_unix_rules(day: str, weekday: str, year: int, month: int, expected: list[int]):
    """J9.1: both set mean either, and one that begins with `*` is not set."""
    assert Days.unix(day, weekday).of(year, month) == expected


@pytest.mark.parametrize(
    ("day", "weekday", "year", "month", "expected"),
    [
        ("?", "1", 2026, 11, [1, 8, 15, 22, 29]),  # 1 is Sunday
        ("?", "SUN", 2026, 11, [1, 8, 15, 22, 29]),
        ("*", "7", 2026, 11, [7, 14, 21, 28]),
        ("?", "L", 2026, 11, [7, 14, 21, 28]),  # Saturday
        ("?", "FRI-MON", 2026, 11, [1, 2, 6, 7, 8, 9, 13, 14, 15, 16, 20, 21, 22, 23, 27, 28, 29, 30]),
        ("?", "6L", 2026, 11, [27]),
        ("?", "FRIL", 2026, 10, [30]),
        ("?", "6#3", 2026, 11, [20]),
        ("?", "MON#5", 2026, 11, [30]),
        ("?", "TUE#5", 2026, 11, []),
        ("?", "MON#1,FRIL", 2026, 11, [2, 27]),
        ("L", "?", 2028, 2, [29]),
        ("L", "?", 2027, 2, [28]),
        ("L-3", "?", 2027, 2, [25]),
        ("L-3", "?", 2026, 12, [28]),
        ("L-30", "?", 2026, 12, [1]),
        ("L-30", "?", 2026, 11, []),
        ("LW", "?", 2026, 10, [30]),  # the 31st is a Saturday
        ("LW", "?", 2027, 2, [26]),  # the 28th is a Sunday: not in March
        ("L-1W", "?", 2026, 11, [30]),  # the 29th is a Sunday
        ("15W", "?", 2026, 11, [16]),  # a Sunday
        ("14W", "?", 2026, 11, [13]),  # a Saturday
        ("16W", "?", 2026, 11, [16]),
        ("1W", "?", 2026, 8, [3]),  # a Saturday: not in July
        ("1W", "?", 2026, 11, [2]),  # a Sunday
        ("31W", "?", 2026, 11, []),  # no such day
        ("31W", "?", 2026, 10, [30]),
        ("31W", "?", 2027, 1, [29]),  # a Sunday: not in February
        ("30W", "?", 2027, 2, []),
        ("1,15W,L", "?", 2026, 11, [1, 16, 30]),
        ("29-2", "?", 2027, 2, [1, 2]),
    ],
)
def test_the_days_of_a_month_by_quartz_rules(day: str, weekday: str, year: int, month: int, expected: list[int]):
    """J9.1: `L`, `W` and `#` stay in their month, and a month without that day has none."""
    assert Days.quartz(day, weekday).of(year, month) == expected
