"""A steady stream of jobs as a value: when the poller looks by itself, and when it waits for notifications."""

import pytest

from tests.engine.test_outlook import DUE, IDLE, due_in, found, jobs
from windlass.engine.arrivals import GIVEN_UP_AFTER, LONGEST_GAP, Arrivals
from windlass.engine.outlook import Outlook
from windlass.engine.poll_steps import ClaimDue, Pause, Rest


def stream(gap: float, number: int = 20) -> Arrivals:
    """So many claims of one job each; the last one at the time 0."""
    arrivals = Arrivals()
    for nth in range(number):
        arrivals = arrivals.after_claim(jobs(1), (nth + 1 - number) * gap)
    return arrivals


@pytest.mark.parametrize(("gap", "steady"), [(0.001, True), (LONGEST_GAP / 2, True), (2 * LONGEST_GAP, False)])
def test_a_stream_is_steady_while_jobs_follow_each_other_faster_than_notifications(gap: float, steady: bool):
    """J3.6: seldom jobs are announced one by one."""
    assert stream(gap).steady(0.0) is steady
    assert stream(gap).gap == pytest.approx(gap)


def test_a_stream_ends_when_no_job_has_come_for_a_while():
    """J3.5: an idle node makes no statements."""
    assert stream(0.001).steady(GIVEN_UP_AFTER / 2)
    assert not stream(0.001).steady(GIVEN_UP_AFTER)


def test_jobs_of_one_claim_count_one_by_one():
    assert stream(0.001).after_claim(jobs(10), 0.01).gap == pytest.approx(0.001)


def test_a_single_job_is_no_stream():
    assert not Arrivals().after_claim(jobs(1), 0.0).steady(0.0)
    assert stream(0.001).after_claim([], 1.0) == stream(0.001)


def test_a_poll_in_a_steady_stream_claims_although_nothing_is_known_to_be_due():
    """J3.6: at the levels of the last jobs; otherwise a claim without levels makes no statement."""
    idle = DUE.begin_look(0.0).after_look(found(), 0.0)
    poll = idle._replace(arrivals=stream(0.001)).begin_poll(8, 0.0)
    action = poll.next_action(0.0)
    assert isinstance(action, ClaimDue)
    assert [(head.queue, head.level) for head in action.heads] == [("mail", 2)]
    assert idle.begin_poll(8, 0.0).claim(8, 0.0).heads == []


def test_a_poller_in_a_steady_stream_rests_as_long_as_the_next_job_takes():
    """J3.6: so it makes about one claim for each job."""

    def rested(outlook: Outlook) -> object:
        poll = outlook.begin_poll(8, 0.0)
        claimed = poll.after_claim(poll.claim(8, 0.0), [], 0.0)
        return claimed.begin_look(0.0).after_look(found(), 0.0).next_action(0.0)

    assert rested(DUE) == Rest(float("inf"))
    assert rested(DUE._replace(arrivals=stream(0.004))) == Rest(stream(0.004).gap)


def test_jobs_that_have_waited_keep_their_due_time_in_a_steady_stream():
    """J3.1: waiting raises a priority; else the level would be left out, for others that rank behind it."""
    waiting, others = due_in(-600), [due_in(-60, f"q{nth}", 4) for nth in range(5)]
    known = DUE.begin_look(0.0).after_look(found(waiting, *others), 0.0)._replace(arrivals=stream(0.001))
    narrow = known._replace(boost_us=60_000_000, reach=known.reach._replace(tiers=1)).begin_poll(8, 0.0)
    assert narrow.claim(8, 0.0).heads == [waiting]


def test_jobs_of_a_claim_that_was_cut_are_no_stream():
    """They have waited; how often new ones come is not known."""
    many = DUE.begin_look(0.0).after_look(found(*(due_in(0, f"q{nth}") for nth in range(16))), 0.0)
    begun = many.begin_poll(64, 0.0)
    cut = begun.after_claim(begun.claim(64, 0.0), jobs(8, "q1"), 0.0)
    assert cut.next_action(0.0) == Pause(0)
    assert cut.arrivals == Arrivals()


def test_empty_polls_in_a_steady_stream_do_not_slow_polling_down():
    """J3.5: the delay doubles with each empty poll that the strategy has asked for."""
    poller = IDLE._replace(arrivals=stream(0.001))
    for nth in range(10):
        begun = poller.begin_poll(8, nth / 1000)
        poller = begun.after_claim(begun.claim(8, nth / 1000), [], nth / 1000)
    assert poller.observation(1.0, 0.0).recent == ()
    ended = poller.begin_poll(8, 1.0)
    assert ended.after_claim(ended.claim(8, 1.0), [], 1.0).observation(1.0, 0.0).recent == ((8, 0),)
