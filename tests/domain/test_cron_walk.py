"""Our cron against a walk through time, on random expressions and around every clock change of 16 years."""

from datetime import UTC, datetime
from itertools import islice
from random import Random
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from tests.support.cron_expressions import quartz, unix
from tests.support.cron_walk import Walk, clock_changes
from windlass import InvalidOptionError
from windlass.domain.clock import MICROSECONDS, from_micros, micros
from windlass.domain.cron import Cron

HOUR, DAY = 3_600, 86_400
YEARS = range(2020, 2036)
ZONES = [
    "Australia/Lord_Howe",  # by half an hour
    "America/Havana",  # at midnight
    "Pacific/Chatham",  # 45 minutes beside the hour
    "Pacific/Apia",
    "Asia/Gaza",  # by decree, several times a year
    "Antarctica/Troll",  # by two hours
    "Europe/Berlin",
    "America/New_York",
    "Africa/Casablanca",  # back for Ramadan
    "America/Santiago",  # at midnight, in the south
]


def ticks(cron: Cron, zone: str, first: int, last: int) -> list[int]:
    """The ticks of ours in [first, last], each asked for behind the one before it."""
    found = []
    at = cron.next_after(first * MICROSECONDS - 1, zone)
    while at is not None and at <= last * MICROSECONDS:
        found.append(at // MICROSECONDS)
        at = cron.next_after(at, zone)
    return found


def fires(expression: str) -> Cron | None:
    """The expression, unless it never fires."""
    try:
        return Cron.parse(expression)
    except InvalidOptionError as error:
        if "it never fires" not in str(error):
            raise
        return None


def agree_around(change: int, zone: str, random: Random, expressions: int) -> int:
    """Compare both on the hours around a clock change, on expressions that often fire there; how many ticks."""
    first, last = change - 5 * HOUR - 60, change + 5 * HOUR
    local = datetime.fromtimestamp(change, UTC).astimezone(ZoneInfo(zone))
    compared = 0
    for _ in range(expressions):
        hour = random.choice([local.hour, (local.hour - 1) % 24, (local.hour - 2) % 24, (local.hour + 1) % 24])
        minute = random.choice(["0", "30", "15,45", "*", "*/15", "0/20", "59", "1-58/7", "*/30", "0,15,30,44,45"])
        hours = random.choice([str(hour), f"{hour}", f"{(hour - 1) % 24}-{hour}", "*", "*/2", f"{hour}/1", "0-23"])
        days = random.choice(["* *", f"{local.day} *", "* 0-6", f"{local.day - 1 or 31} *", f"* {local.isoweekday()}"])
        day, weekday = days.split()
        expression = f"{minute} {hours} {day} * {weekday}"
        start = random.randint(first, last)
        expected = list(Walk(expression).ticks(ZoneInfo(zone), start, last))
        assert ticks(Cron.parse(expression), zone, start, last) == expected, f"{expression!r} {zone} from {start}"
        compared += len(expected)
    return compared


def agree_from(expression: str, zone: str, start: int, days: int, most: int) -> int:
    """Compare the first ticks of both; how many there were."""
    cron = fires(expression)
    expected = list(islice(Walk(expression).ticks(ZoneInfo(zone), start, start + days * DAY), most))
    if cron is None:
        assert expected == [], f"{expression!r} {zone} from {start}: refused, though it fires"
        return 0
    until = expected[-1] if len(expected) == most else start + days * DAY
    assert ticks(cron, zone, start, until) == expected, f"{expression!r} {zone} from {start}"
    return len(expected)


def agree_on_corpus(seed: int, count: int) -> int:
    random = Random(seed)
    compared = 0
    for number in range(count):
        expression = unix(random) if number % 3 == 0 else quartz(random, seconds=number % 3 == 1)
        start = random.randint(int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()), 2_050_000_000)
        compared += agree_from(expression, random.choice(["UTC", *ZONES]), start, days=90, most=6)
    return compared


@pytest.mark.parametrize("zone", ZONES)
def test_ticks_around_every_clock_change_are_those_of_a_walk(zone: str):
    """J9.1: gaps, overlaps, and both kinds of expression, 2020 to 2035."""
    changes = clock_changes(ZoneInfo(zone), YEARS)
    compared = sum(agree_around(change, zone, Random(change), expressions=4) for change in changes)
    assert compared > 10 * len(changes) > 0


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("time", ["*/20 */10 *", "7,50 0/15 0-23", "59 59 *", "0 0/30 *", "0 * 0-5,23"])
def test_ticks_with_seconds_around_clock_changes_are_those_of_a_walk(zone: str, time: str):
    """J9.1: the last two changes of a zone are one forward and one back."""
    for change in clock_changes(ZoneInfo(zone), YEARS)[-2:]:
        first, last = change - 2 * HOUR - 50, change + 2 * HOUR + 50
        expression = f"{time} * * ?"
        expected = list(Walk(expression).ticks(ZoneInfo(zone), first, last))
        assert ticks(Cron.parse(expression), zone, first, last) == expected


def test_ticks_of_random_expressions_are_those_of_a_walk():
    """J9.1: Unix and Quartz forms, with and without seconds and years, in eleven zones."""
    assert agree_on_corpus(seed=1, count=300) > 600


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 10))
def test_ticks_of_a_large_random_corpus_are_those_of_a_walk(seed: int):
    """J9.1."""
    assert agree_on_corpus(seed, count=2_000) > 4_000


@pytest.mark.soak
@pytest.mark.parametrize("zone", ZONES)
def test_ticks_of_many_expressions_around_clock_changes_are_those_of_a_walk(zone: str):
    """J9.1."""
    for change in clock_changes(ZoneInfo(zone), YEARS):
        agree_around(change, zone, Random(-change), expressions=100)


def test_ticks_of_five_fields_are_those_of_cronsim():
    """J9.1: another library, in UTC, where it is right; it does not take ranges that wrap."""
    random = Random(3)
    for _ in range(1_000):
        expression = unix(random, wraps=False)
        start = from_micros(random.randint(1_600_000_000, 2_000_000_000) * MICROSECONDS)
        cron = fires(expression)
        expected = list(islice(CronSim(expression, start), 5)) if cron else []
        at: int | None = micros(start)
        for moment in expected:
            assert cron is not None
            assert at is not None
            at = cron.next_after(at, "UTC")
            assert at == micros(moment), f"{expression!r} from {start}"
