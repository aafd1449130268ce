"""Gates: no window of a rate has more than the rate, and the next look is neither late nor idle."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from windlass.domain.gates import PARTS, Gate, free_permits, most_at_once, narrowest, taken_after, worth_a_look
from windlass.domain.limits import PER_US

SECOND = 1_000_000
START = 1_800_000_000 * SECOND

rates = st.integers(1, 30)
windows = st.sampled_from([*PER_US.values(), 1, 7, 19, 999_999])


def times_of(per_us: int) -> st.SearchStrategy[list[int]]:
    """Moments that crowd, fall on edges of parts, and leap over windows."""
    part = max(per_us // PARTS, 1)
    step = st.one_of(
        st.integers(0, 3),
        st.integers(0, 2 * part),
        st.sampled_from([part, per_us, per_us - 1, per_us + 1, per_us + part]),
    )
    return st.lists(step, max_size=60).map(_sums)


def _sums(steps: Sequence[int]) -> list[int]:
    moments, now = [], START
    for step in steps:
        now += max(step, 0)
        moments.append(now)
    return moments


@st.composite
def rated(draw: st.DrawFn) -> tuple[Gate, list[tuple[int, int]]]:
    """A gate with a rate, and how many permits are requested when."""
    per_us = draw(windows)
    moments = draw(times_of(per_us))
    asked = draw(st.lists(st.integers(0, 40), min_size=len(moments), max_size=len(moments)))
    return Gate("resource:x", rate=draw(rates), per_us=per_us), list(zip(moments, asked, strict=True))


def through(gate: Gate, asked: int, now: int) -> tuple[Gate, int]:
    """Let through as many of the requests as may pass."""
    free = free_permits(gate, now)
    taken = asked if free is None else min(asked, free)
    return gate._replace(taken=taken_after(gate, taken, now)), taken


@given(rated())
def test_no_window_ever_has_more_than_the_rate(case: tuple[Gate, list[tuple[int, int]]]):
    """J6.2, J1.7: a sliding window; every stretch of time as long as it has the rate at most."""
    gate, asking = case
    taken: list[tuple[int, int]] = []
    for now, asked in asking:
        gate, count = through(gate, asked, now)
        taken.append((now, count))
    assert gate.rate is not None
    assert gate.per_us is not None
    for start, _ in taken:
        assert sum(count for moment, count in taken if start <= moment < start + gate.per_us) <= gate.rate


@given(rated())
def test_a_rate_is_used_completely_within_a_twentieth_more_than_its_window(
    case: tuple[Gate, list[tuple[int, int]]],
):
    """J6.2: never exceeded does not mean starved: after the window and a part of it all permits are back."""
    gate, asking = case
    for now, asked in asking:
        gate, _ = through(gate, asked, now)
    last = asking[-1][0] if asking else START
    assert gate.per_us is not None
    assert free_permits(gate, last + gate.per_us + max(gate.per_us // PARTS, 1)) == gate.rate


@given(rated())
def test_the_next_check_is_not_after_the_first_free_permit_and_does_not_spin(case: tuple[Gate, list[tuple[int, int]]]):
    """J3.6, J6.2: by time alone, a place is never there before the look, and a handful of looks find it."""
    gate, asking = case
    for now, asked in asking:
        gate, _ = through(gate, asked, now)
    now = asking[-1][0] if asking else START
    looks = [now]
    while free_permits(gate, looks[-1]) == 0:
        looks.append(worth_a_look(gate, looks[-1]))
        assert len(looks) <= PARTS + 2
    assert worth_a_look(gate, looks[-1]) == looks[-1], "a gate with free permits is worth a look now"
    for before, after in pairwise(looks):
        assert after > before
        assert free_permits(gate, after - 1) == 0, "there was a permit before the look"


@given(rated(), rates)
def test_a_rate_that_was_lowered_is_kept_at_once_and_looked_at_seldom(
    case: tuple[Gate, list[tuple[int, int]]], lower: int
):
    """J6.2: edited while running; what passed under the old rate counts for the new one."""
    gate, asking = case
    assume(asking)
    for now, asked in asking:
        gate, _ = through(gate, asked, now)
    gate, now = gate._replace(rate=lower), asking[-1][0]
    looks = 0
    while free_permits(gate, now) == 0:
        following = worth_a_look(gate, now)
        assert following > now
        now, looks = following, looks + 1
    assert looks <= PARTS + 2


@given(st.integers(0, 50), st.integers(0, 80))
def test_free_permits_are_the_limit_less_those_in_use(cap: int, in_use: int):
    """J6.2: lowered below what is in use, it lets no job through until enough have ended."""
    assert free_permits(Gate("x", cap=cap, in_use=in_use), START) == max(cap - in_use, 0)


def test_a_gate_without_a_limit_lets_any_number_through():
    assert free_permits(Gate("x"), START) is None
    assert worth_a_look(Gate("x"), START) == START
    assert taken_after(Gate("x"), 5, START) is None


@given(st.integers(1, 10), st.integers(0, 10), rates)
def test_the_narrower_of_cap_and_rate_decides(cap: int, in_use: int, rate: int):
    gate = Gate("x", cap=cap, in_use=in_use, rate=rate, per_us=SECOND)
    assert free_permits(gate, START) == max(min(cap - in_use, rate), 0)


def test_a_full_gate_is_looked_at_again_after_its_delay():
    """J6.2: a released permit is notified; the delay is for lost notifications."""
    gate = Gate("x", cap=2, in_use=2, retry_us=7 * SECOND)
    assert worth_a_look(gate, START) == START + 7 * SECOND
    assert worth_a_look(gate._replace(in_use=1), START) == START


@pytest.mark.parametrize("wait", [1, SECOND, 10**15])
def test_a_gate_that_opens_later_is_looked_at_then(wait: int):
    """J6.1: behind an open circuit nothing passes before its wait is over."""
    gate = Gate("circuit:x", cap=3, opens_at=START + wait)
    assert free_permits(gate, START) == 0
    assert worth_a_look(gate, START) == START + wait
    assert free_permits(gate, START + wait) == 3


def test_the_stored_history_of_a_rate_stays_small():
    """J6.2: parts, not takes: a gate's row is written with every claim."""
    gate = Gate("x", rate=10_000_000, per_us=SECOND)
    for moment in range(0, 3 * SECOND, 1000):
        gate, _ = through(gate, 1, START + moment)
    assert len(gate.taken or "") < 40 * (PARTS + 2)


ways = st.lists(st.lists(st.sampled_from("abcd"), unique=True, max_size=3), max_size=20)
permit_counts = st.fixed_dictionaries({}, optional=dict.fromkeys("abcd", st.none() | st.integers(-5, 20)))


wanted_numbers = st.integers(0, 10)


@given(wanted_numbers, ways, permit_counts)
@example(5, [["a", "b"]], {"a": 3, "b": 2})
def test_at_most_one_gate_of_a_lane_can_run_short_within_the_bound(
    most: int, lanes: list[list[str]], free: dict[str, int | None]
):
    """J3.4: so that each gate can be counted by itself."""
    number = most_at_once(most, lanes, free)
    assert number <= most
    for lane in lanes:
        assert sum((left := free.get(gate)) is not None and left < number for gate in lane) <= 1


@given(wanted_numbers, ways, permit_counts)
def test_a_claim_is_made_smaller_only_where_two_gates_could_run_short(
    most: int, lanes: list[list[str]], free: dict[str, int | None]
):
    """J3.4: and goes on where all gates have room."""
    number = most_at_once(most, lanes, free)
    if number < most:
        one_more = [sum((left := free.get(gate)) is not None and left <= number for gate in lane) for lane in lanes]
        assert max(one_more) >= 2
    if all((left := free.get(gate)) is None or left > 0 for lane in lanes for gate in lane):
        assert number >= min(most, 1)


@given(wanted_numbers, st.lists(st.sampled_from("abcd"), unique=True, max_size=3), permit_counts)
def test_the_narrowest_gate_is_the_one_with_the_fewest_free_permits(
    wanted: int, lane: list[str], free: dict[str, int | None]
):
    """J3.4: where several gates apply, it decides; a gate without a limit never does."""
    found = narrowest(lane, free, wanted)
    left = [number for gate in lane if (number := free.get(gate)) is not None]
    assert (found is None) == all(number >= wanted for number in left)
    assert found is None or free[found] == min(left)


@pytest.mark.parametrize("taken", ["xx", "{}x", "[1]", '[["a", 1]]', "7"])
def test_a_damaged_count_of_a_rate_starts_over(taken: str):
    """J7.9: a gate whose row was damaged holds no job back."""
    gate = Gate("resource:stripe", cap=None, in_use=0, rate=5, per_us=SECOND, opens_at=None, taken=taken, retry_us=1)
    assert free_permits(gate, START) == 5
