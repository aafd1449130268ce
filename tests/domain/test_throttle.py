"""Coalescing of signals."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.throttle import NOTHING, SEND, Action, Decision, Throttle
from windlass.errors import InvalidOptionError

gaps = st.lists(st.floats(0, 0.1), max_size=60)


def test_the_first_request_is_sent_at_once():
    assert Throttle(0.02).request(0.0) == SEND


def test_a_burst_gives_one_at_its_start_and_one_at_its_end():
    """Coalesced; the last of a burst is not lost."""
    throttle = Throttle(0.02)
    assert throttle.request(1.0) is SEND
    assert throttle.request(1.005) == Decision(Action.WAIT, 1.02)
    assert throttle.request(1.006) is NOTHING
    assert throttle.pending_at == 1.02
    assert not throttle.due(1.019)
    assert throttle.due(1.02)
    assert not throttle.due(1.02)
    assert throttle.pending_at is None


def test_a_trailing_send_starts_a_new_interval():
    throttle = Throttle(0.02)
    throttle.request(1.0)
    throttle.request(1.01)
    assert throttle.due(1.025)
    assert throttle.request(1.03) == Decision(Action.WAIT, 1.025 + 0.02)


def test_a_request_after_the_interval_takes_over_a_trailing_send_that_is_late():
    throttle = Throttle(0.02)
    throttle.request(1.0)
    throttle.request(1.01)
    assert throttle.request(1.03) is SEND
    assert not throttle.due(1.03)


def test_a_pending_send_is_flushed_once_at_exit():
    """The trailing one is flushed at exit."""
    throttle = Throttle(0.02)
    throttle.request(1.0)
    assert not throttle.flush(1.001)
    throttle.request(1.002)
    assert throttle.flush(1.003)
    assert not throttle.flush(1.004)
    assert not throttle.due(2.0)


def test_without_an_interval_everything_is_sent():
    throttle = Throttle(0)
    assert [throttle.request(1.0) for _ in range(3)] == [SEND] * 3


@given(gaps, st.floats(0.001, 0.05))
def test_sends_keep_their_distance_and_every_request_is_followed_by_one_in_time(waits, interval):
    """Lost signals would only cost latency, but none is lost: driven by a timer that keeps `until`."""
    throttle, now = Throttle(interval), 0.0
    requests: list[float] = []
    sends: list[float] = []
    timer: float | None = None
    for wait in waits:
        now += wait
        if timer is not None and timer <= now:
            assert throttle.due(timer)
            sends.append(timer)
            timer = None
        requests.append(now)
        decision = throttle.request(now)
        if decision.action is Action.SEND:
            sends.append(now)
        elif decision.action is Action.WAIT:
            assert timer is None
            timer = decision.until
        assert timer == throttle.pending_at
    if timer is not None:
        assert throttle.due(timer)
        sends.append(timer)
    assert all(later >= earlier + interval for earlier, later in pairwise(sends))
    for asked in requests:
        assert any(asked <= sent <= asked + interval for sent in sends)


@given(gaps)
def test_a_timer_that_is_never_kept_still_bounds_the_rate(waits):
    throttle, now, sent = Throttle(0.02), 0.0, []
    for wait in waits:
        now += wait
        if throttle.request(now) is SEND:
            sent.append(now)
    assert all(later >= earlier + 0.02 for earlier, later in pairwise(sent))


@pytest.mark.parametrize("interval", [-0.001, float("nan")])
def test_a_bad_interval_is_refused(interval):
    with pytest.raises(InvalidOptionError, match="throttle interval"):
        Throttle(interval)
