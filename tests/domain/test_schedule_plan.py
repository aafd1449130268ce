"""Which ticks of a schedule fire: by policy, after outages, with a clock set back, between start and end."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass import InvalidOptionError, Misfire, every
from windlass.domain.clock import micros
from windlass.domain.cron import Cron
from windlass.domain.schedule_plan import (
    MAX_COUNTED,
    DueTicks,
    SchedulePlan,
    due_ticks,
    jitter_of,
    parse_times,
)

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
LATE = 10 * SECOND
NOON = micros(datetime(2027, 5, 1, 12, tzinfo=UTC))
MINUTELY = Cron.parse("* * * * *")


def minutely(**options: Any) -> SchedulePlan:
    return SchedulePlan(times=MINUTELY, **options)


def every_minute(**options: Any) -> SchedulePlan:
    return SchedulePlan(times=every(minutes=1), anchor=NOON - DAY, **options)


def noon_and(*minutes: int) -> tuple[int, ...]:
    return tuple(NOON + minute * MINUTE for minute in minutes)


PLANS = pytest.mark.parametrize("make", [minutely, every_minute])


@PLANS
@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (NOON - 1, DueTicks((), NOON, 0)),
        (NOON, DueTicks((NOON,), NOON + MINUTE, 0)),
        (NOON + LATE, DueTicks((NOON,), NOON + MINUTE, 0)),
        (NOON - DAY, DueTicks((), NOON, 0)),  # the clock was set back: what was fired does not fire again
    ],
)
def test_a_tick_that_is_due_fires_under_every_policy(make: Any, misfire: Misfire, now: int, expected: DueTicks):
    """J9.3: it is late by 10 seconds at most."""
    assert due_ticks(make(misfire=misfire), NOON, now, LATE) == expected


@PLANS
@pytest.mark.parametrize(
    ("misfire", "minutes", "late", "fired", "skipped"),
    [
        (Misfire.CATCH_UP, 0, LATE + 1, noon_and(0), 0),
        (Misfire.CATCH_UP, 1, 0, noon_and(0, 1), 0),
        (Misfire.CATCH_UP, 10, 0, noon_and(*range(11)), 0),
        (Misfire.CATCH_UP, 11, 0, noon_and(*range(11)), 1),  # the oldest, also if the last is on time
        (Misfire.CATCH_UP, 600, 30 * SECOND, noon_and(*range(11)), 590),
        (Misfire.FIRE_ONCE, 0, LATE + 1, noon_and(0), 0),
        (Misfire.FIRE_ONCE, 1, 0, noon_and(0), 1),
        (Misfire.FIRE_ONCE, 600, 0, noon_and(0), 600),
        (Misfire.SKIP, 0, LATE, noon_and(0), 0),
        (Misfire.SKIP, 0, LATE + 1, (), 1),
        (Misfire.SKIP, 1, 0, noon_and(1), 1),
        (Misfire.SKIP, 1, LATE, noon_and(1), 1),
        (Misfire.SKIP, 1, LATE + 1, (), 2),
        (Misfire.SKIP, 600, 0, noon_and(600), 600),
        (Misfire.SKIP, 600, 30 * SECOND, (), 601),
    ],
)
def test_missed_ticks_fire_as_the_policy_says(
    make: Any, misfire: Misfire, minutes: int, late: int, fired: tuple[int, ...], skipped: int
):
    """J9.3: of the ticks due now all but the last are missed, and the last if it is over 10 seconds late."""
    now = NOON + minutes * MINUTE + late
    found = due_ticks(make(misfire=misfire), NOON, now, LATE)
    assert found == DueTicks(fired, NOON + (minutes + 1) * MINUTE, skipped)


@PLANS
def test_the_number_of_ticks_to_catch_up_is_configurable(make: Any):
    """J9.3."""
    found = due_ticks(make(catch_up=3), NOON, NOON + 9 * MINUTE, LATE)
    assert found == DueTicks(noon_and(0, 1, 2), NOON + 10 * MINUTE, 7)


def test_missed_ticks_of_an_interval_are_all_counted():
    """J9.3: after ten years without a worker."""
    plan = SchedulePlan(times=every(seconds=1), anchor=NOON, misfire=Misfire.FIRE_ONCE)
    years = 10 * 365 * 86_400
    assert due_ticks(plan, NOON, NOON + years * SECOND, LATE).skipped == years


@pytest.mark.parametrize("misfire", Misfire)
def test_missed_ticks_of_an_expression_are_counted_up_to_a_bound(misfire: Misfire):
    """J9.3: what is missed is never enumerated beyond it; ten years of seconds are 315 million."""
    plan = SchedulePlan(times=Cron.parse("* * * * * ?"), zone="Europe/Berlin", misfire=misfire)
    now = NOON + 3_650 * DAY
    found = due_ticks(plan, NOON, now, LATE)
    assert found.skipped == MAX_COUNTED
    assert found.next_at == now + SECOND
    assert found.ticks[-1:] == ((now,) if misfire is Misfire.SKIP else found.ticks[-1:])


def test_the_last_tick_is_found_however_late_counts_as_missed():
    """J9.3: with a `misfire_after` of a day, by halving."""
    plan = SchedulePlan(times=Cron.parse("0 7,9 * * *"), misfire=Misfire.SKIP)
    start = NOON + 19 * HOUR  # 07:00
    found = due_ticks(plan, start, start + 5 * DAY + 6 * HOUR, DAY)
    assert found.ticks == (start + 5 * DAY + 2 * HOUR,)
    assert found.skipped == 11


@PLANS
def test_a_schedule_ends_with_its_last_tick(make: Any):
    """J9.3: a tick at the end still fires, none after it."""
    plan = make(ends=NOON + MINUTE)
    assert due_ticks(plan, NOON, NOON, LATE) == DueTicks(noon_and(0), NOON + MINUTE, 0)
    assert due_ticks(plan, NOON + MINUTE, NOON + MINUTE, LATE) == DueTicks(noon_and(1), None, 0)
    assert due_ticks(plan, NOON, NOON + HOUR, LATE) == DueTicks(noon_and(0, 1), None, 0)
    assert due_ticks(plan, None, NOON + HOUR, LATE) == DueTicks((), None, 0)
    skipping = make(ends=NOON + MINUTE, misfire=Misfire.SKIP)
    assert due_ticks(skipping, NOON, NOON + HOUR, LATE) == DueTicks((), None, 2)


@PLANS
def test_a_schedule_begins_with_the_first_tick_at_its_start(make: Any):
    """J9.3."""
    assert make(starts=NOON).next_after(NOON - DAY) == NOON
    assert make(starts=NOON + 1).next_after(NOON - DAY) == NOON + MINUTE
    assert make(starts=NOON).next_after(NOON) == NOON + MINUTE


def test_an_interval_keeps_its_phase():
    """J9.1: the first tick is at the start, or one interval after the creation; a restart changes nothing."""
    plan = SchedulePlan(times=every(hours=1), anchor=NOON + 7, starts=NOON + 7)
    assert plan.next_after(NOON) == NOON + 7
    created = SchedulePlan(times=every(hours=1), anchor=NOON + 7)
    assert created.next_after(NOON + 7) == NOON + 7 + HOUR
    assert created.next_after(NOON + DAY) == NOON + DAY + 7


def test_an_interval_is_real_time_when_clocks_change():
    """J9.1."""
    before = micros(datetime(2027, 3, 27, 11, tzinfo=UTC))
    plan = SchedulePlan(times=every(days=1), anchor=before, zone="Europe/Berlin")
    assert plan.next_after(before) == before + DAY


@given(
    st.sampled_from(Misfire), st.integers(1, 20), st.integers(0, 40 * MINUTE), st.integers(0, 5 * MINUTE), st.booleans()
)
def test_ticks_fire_once_in_order_and_not_before_their_time(
    misfire: Misfire, catch_up: int, outage: int, late: int, interval: bool
):
    """J9.3: all that is due is fired or counted, and the next tick is after now."""
    plan = (every_minute if interval else minutely)(misfire=misfire, catch_up=catch_up)
    now = NOON + outage
    found = due_ticks(plan, NOON, now, late)
    assert list(found.ticks) == sorted(set(found.ticks))
    assert all(NOON <= tick <= now and (tick - NOON) % MINUTE == 0 for tick in found.ticks)
    assert len(found.ticks) + found.skipped == outage // MINUTE + 1
    assert found.next_at == NOON + (outage // MINUTE + 1) * MINUTE


@given(st.uuids(), st.integers(0, 2**53), st.integers(0, 2**40))
def test_jitter_is_the_same_each_time_and_within_its_bound(schedule: UUID, tick: int, most: int):
    """J9.3: a repeated transaction gives the same due time."""
    assert 0 <= jitter_of(schedule, tick, most) <= most
    assert jitter_of(schedule, tick, most) == jitter_of(UUID(schedule.hex), tick, most)


def test_jitter_spreads_ticks_and_schedules():
    """J9.3: it is the same on every machine, hence the number."""
    schedule = UUID(int=7)
    assert jitter_of(schedule, NOON, 30 * SECOND) == 18_130_410
    assert len({jitter_of(schedule, NOON + number, 30 * SECOND) for number in range(100)}) > 90
    assert len({jitter_of(UUID(int=number), NOON, 30 * SECOND) for number in range(100)}) > 90


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"zone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
        ({"starts": NOON, "ends": NOON - 1}, "end must not be before its start"),
        ({"jitter_us": -1}, "jitter must be seconds >= 0"),
        ({"catch_up": 0}, "catch_up must be a whole number from 1 to 1000, got 0"),
        ({"catch_up": 1001}, "catch_up must be a whole number from 1 to 1000, got 1001"),
        ({"catch_up": True}, "catch_up must be a whole number from 1 to 1000, got True"),
        ({"times": every(hours=1)}, "needs an anchor"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(options: dict[str, Any], says: str):
    """J9.3."""
    with pytest.raises(InvalidOptionError) as caught:
        SchedulePlan(**{"times": MINUTELY, **options})
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["0 2 * * *", "0 0 2 L * ?", "every(hours=1)", "every(weeks=2)"])
def test_times_are_read_back_from_their_text(text: str):
    """J9.1."""
    assert str(parse_times(text)) == text
