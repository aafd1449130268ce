"""Which of many levels a claim reads, as a table: those that rank first, as many as the last claims needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_outlook import FRESH, STORE, due_in, found, jobs
from windlass.domain.job import Claim
from windlass.engine.claim_reach import ALL, FEW, ClaimReach, choose, is_cut, needed
from windlass.engine.low_water import LOOK_BACK, LowWater
from windlass.engine.outlook import BUSY_FRESH, Outlook
from windlass.engine.poll_steps import ClaimDue, Look, Pause
from windlass.stores.claim_order import Head, effective_priority

MINUTE_US = 60_000_000
LEVELS = [due_in(0, queue, level) for level in (1, 2, 3) for queue in ("mail", "sms")]


def mixed() -> Outlook:
    """Six levels in three tiers, of which all are read."""
    return Outlook(FRESH, 0.0).begin_look(0.0).after_look(found(*LEVELS), 0.0)


def after(outlook: Outlook, wanted: int, got: list[Claim]) -> Outlook:
    begun = outlook.begin_poll(wanted, 0.0)
    return begun.after_claim(begun.claim(wanted, 0.0), got, 0.0)


def test_all_of_a_few_levels_are_read():
    """J3.1: leaving one out would save nothing."""
    assert choose(LEVELS[:FEW], (), 1, STORE, 0) == (LEVELS[:FEW], [], {})


@pytest.mark.parametrize("tiers", [1, 2, 3, ALL])
def test_the_first_tiers_are_read_and_the_best_of_the_others_named(tiers: int):
    """J3.1: one of each priority left out is enough to know what could come first."""
    chosen = choose(LEVELS, (), tiers, STORE, 0)
    assert {head.level for head in chosen.heads} == {3, 2, 1} - {head.level for head in chosen.others}
    assert len(chosen.heads) == 2 * min(tiers, 3)
    assert len(chosen.others) == 3 - min(tiers, 3)


def test_the_longest_waiting_of_the_omitted_levels_is_named():
    """J3.1: waiting raises a priority."""
    early = due_in(-9, "web", 1)
    assert choose([*LEVELS, early], (), 2, STORE, 0).others == [early]


def test_a_level_that_has_waited_is_in_the_tier_of_its_effective_priority():
    """J3.1: two minutes at one level a minute."""
    aged = due_in(-120, "old", 1)
    chosen = choose([*LEVELS, aged], (), 1, STORE, MINUTE_US)
    assert aged in chosen.heads
    assert {head.level for head in chosen.heads} == {3, 1}


def test_levels_behind_gates_are_always_read():
    """J3.4: it is not known since when their first job waits, only when its gate may have room."""
    lane, limited = due_in(0, "mail", 0, "resource:r"), [due_in(0, "slow", level) for level in (0, 1)]
    chosen = choose([*LEVELS, lane, *limited], {"slow"}, 1, STORE, 0)
    assert chosen.heads == [lane, *limited, *LEVELS[4:]]
    assert {head.level for head in chosen.others} == {1, 2}


heads_of_any_kind = st.lists(
    st.builds(
        Head,
        st.sampled_from("abcd"),
        st.integers(0, 9),
        st.integers(STORE - 5 * MINUTE_US, STORE),
        st.none(),
        st.none(),
    ),
    unique_by=lambda head: (head.queue, head.level),
)


@given(heads_of_any_kind, st.integers(1, 10), st.sampled_from([0, MINUTE_US]))
def test_chosen_levels_rank_before_omitted_ones(due: list[Head], tiers: int, boost_us: int):
    """J3.1: and the named ones stand for all that is left out."""

    def rank(head: Head) -> int:
        return effective_priority(head.level, head.due_at, STORE, boost_us)

    chosen = choose(due, (), tiers, STORE, boost_us)
    left_out = [head for head in due if head not in chosen.heads]
    assert min(map(rank, chosen.heads), default=99) > max(map(rank, left_out), default=-1)
    assert max(map(rank, chosen.others), default=-1) == max(map(rank, left_out), default=-1)


def test_the_next_claim_reads_the_tiers_that_the_last_one_needed():
    """J3.1: a claim that was satisfied by the highest level reads no other the next time."""
    assert after(mixed(), 8, jobs(8, level=3)).claim(8, 0.0).heads == LEVELS[4:]
    assert len(after(mixed(), 8, [*jobs(4, level=3), *jobs(4, "sms", 2)]).claim(8, 0.0).heads) == 4


def test_a_claim_that_found_too_little_is_followed_by_one_of_twice_as_many_tiers():
    """J3.1: until all are read."""
    one = after(mixed(), 8, jobs(8, level=3))
    two = after(one, 8, [])
    assert len(two.claim(8, 0.0).heads) == 4
    assert after(two, 8, []).claim(8, 0.0).heads == mixed().claim(8, 0.0).heads


def test_a_claim_of_a_few_levels_does_not_change_how_many_tiers_are_read():
    known = after(mixed(), 8, jobs(8, level=3))
    few = known.begin_look(0.0).after_look(found(due_in(0)), 0.0)
    assert after(few, 8, []).reach.tiers == known.reach.tiers


def test_a_claim_that_took_all_it_read_of_a_level_is_followed_by_another_without_a_look():
    """J3.6: more of that level is due for certain; if it brought little, more is read of each."""
    many = [due_in(0, f"q{number}", 3) for number in range(16)]
    known = Outlook(FRESH, 0.0).begin_look(0.0).after_look(found(*many)._replace(queues=frozenset()), 0.0)
    chunk = known.claim(64, 0.0).chunk
    assert chunk == 8
    cut = after(known, 64, jobs(chunk, "q1", 3))
    assert (cut.next_action(0.0), cut.reach.widening) == (Pause(0), 2)
    rich = after(known, 64, [job for number in range(6) for job in jobs(chunk, f"q{number}", 3)])
    assert (rich.next_action(0.0), rich.reach.widening) == (Pause(0), 1)


@pytest.mark.parametrize(("number", "cut"), [(0, False), (7, False), (8, True)])
def test_a_claim_is_cut_where_it_took_a_whole_chunk(number: int, cut: bool):
    other = jobs(7, "sms")
    assert is_cut([*jobs(number), *other], 8) is cut


def test_jobs_of_an_unknown_level_come_from_the_first_tier():
    """J7.9: a damaged row may claim to be of any."""
    assert needed(jobs(2, "unknown"), {("mail", 2, None): 3}) == 1
    assert needed([], {}) == 1


def cut_short() -> Outlook:
    """The last claim took all that it read of a level, and not all that it wanted."""
    many = [due_in(0, f"q{number}", 3) for number in range(16)]
    known = Outlook(FRESH, 0.0).begin_look(0.0).after_look(found(*many), 0.0)
    return after(known, 64, jobs(8, "q1", 3))


def test_new_work_is_looked_for_while_claims_are_cut_short():
    """J3.1: it may be in a lane; the bound of claims that come back full holds, since no look follows these either."""
    updated = cut_short().new_work([("mail", 9)], 0.0).begin_poll(64, 0.0)
    assert isinstance(updated.next_action(BUSY_FRESH), ClaimDue)
    assert updated.next_action(BUSY_FRESH + 0.01) == Look()


def test_lanes_are_looked_at_while_claims_are_cut_short():
    """J3.1: 64 of them every 0.1 s."""
    assert cut_short()._replace(many_lanes=True).begin_poll(64, 0.0).next_action(BUSY_FRESH + 0.01) == Look()


def test_the_first_entries_are_looked_at_while_claims_are_cut_short():
    """J3.1: a job below a low-water mark waits about a second, however long there is a backlog."""
    cut = cut_short()
    marked = cut._replace(low_water=LowWater(in_use=True, whole=False, checked_at=0.0))
    begun = marked.begin_poll(64, LOOK_BACK)
    assert begun.next_action(LOOK_BACK) == Look()
    assert begun.begin_look(LOOK_BACK).low_water.whole


def test_contention_for_hours_is_over_after_some_full_claims():
    """J3.1: else chunks would stay large for as long as other nodes held all that was due."""
    reach = ClaimReach()
    for _ in range(1_000):
        reach = reach.after_look(due=True)
    for _ in range(10):
        reach = reach.after_claim(ClaimDue([], 8, 8), jobs(8), cut=False)
    assert reach.widening == 1
