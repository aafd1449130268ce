"""The state machine's table."""

from itertools import product

import pytest

from windlass.domain.states import LIVE, MOVES, TERMINAL, JobStatus, Move, sources_of

P, R, W, Z, S, F, C = JobStatus  # Z: PAUSED

# Row: from; the states it may go to. Written by hand from J2 (and J6.3: PENDING fails when no node knows its target;
# J8.5: a job whose signal did not come fails by an attempt, and waits anew with a retry, also by hand; and J8.4: a
# batch ends without running),
# on purpose not derived from the module.
LEGAL = {
    P: {R, Z, C, F, S},
    R: {S, F, P, C, W},
    W: {P, C},
    Z: {P, F, C, S},
    S: set(),
    F: {P, Z, W},
    C: {P, W},
}


def test_the_seven_states_are_named_as_they_are_stored():
    assert [status.value for status in JobStatus] == [status.name for status in JobStatus]
    assert " ".join(JobStatus) == "PENDING RUNNING WAITING PAUSED SUCCEEDED FAILED CANCELED"
    assert str(JobStatus.PENDING) == "PENDING"


def test_live_and_terminal_divide_the_states():
    assert set(JobStatus) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert {P, R, Z, W} == LIVE


@pytest.mark.parametrize(("source", "target"), list(product(JobStatus, JobStatus)))
def test_exactly_the_moves_of_the_specification_are_legal(source, target):
    """J2.1: one table of legal transitions."""
    assert any((source, target) in pairs for pairs in MOVES.values()) == (target in LEGAL[source])


def test_every_move_is_in_the_table_and_changes_the_state():
    """J2.1: no move without a row, no row that goes nowhere."""
    assert set(MOVES) == set(Move)
    for pairs in MOVES.values():
        assert pairs
        assert all(source != target for source, target in pairs)


@pytest.mark.parametrize(
    ("move", "sources"),
    [
        (Move.CLAIM, {P}),
        (Move.CANCEL, {P, R, Z, W}),
        (Move.PAUSE, {P, F}),
        (Move.RESUME, {Z}),
        (Move.RETRY, {F}),
        (Move.REVIVE, {C}),
        (Move.REQUEUE, {R}),
        (Move.RELEASE, {R}),
        (Move.SIGNAL, {W}),
        (Move.EXPIRE, {W}),
        (Move.PARK, {R, F}),
        (Move.GIVE_UP, {P}),
    ],
)
def test_each_move_has_exactly_its_source_states(move, sources):
    """J2.1: every write compares the state it leaves."""
    assert sources_of(move) == sources


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        MOVES[Move.CLAIM] = frozenset()  # type: ignore[index]


def test_resuming_returns_exactly_to_the_states_that_can_be_paused():
    """PAUSED goes back to the state it was paused from."""
    assert {target for _, target in MOVES[Move.RESUME]} == sources_of(Move.PAUSE)


def test_success_is_final_and_only_a_revival_ends_cancellation():
    """J2.4: of a follower, by the retry of what had canceled it."""
    assert not [move for move in Move if S in sources_of(move)]
    assert [move for move in Move if C in sources_of(move)] == [Move.REVIVE]
