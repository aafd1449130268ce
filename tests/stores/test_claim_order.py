"""The order of a claim over several levels, queues and lanes, as a pure function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.stores.claim_order import ClaimRequest, Head, QueueLane, Share, at_least, is_time, merge_heads

NOW = 1_000
Rows = list[tuple[str, int, int]]
"""Id, due time, priority."""


def request(heads: list[Head], wanted: int, chunk: int, boost_us: int = 0) -> ClaimRequest:
    return ClaimRequest("n", heads, wanted, chunk, boost_us)


def merged(
    *chunks: Rows, wanted: int = 10, chunk: int = 8, boost_us: int = 0, gates: dict[str, int] | None = None
) -> list[str]:
    """Ids in the order of the claim; the head of chunk n is queue qn, whose gate may have so many permits left."""
    heads = [Head(f"q{number}", 2, 0) for number in range(len(chunks))]
    given_gates: dict[QueueLane, Share] = {
        (queue, None): Share(queue, left, None) for queue, left in (gates or {}).items()
    }
    found = merge_heads(heads, chunks, request(heads, wanted, chunk, boost_us), NOW, given_gates)
    return [job for job, _ in found]


def test_higher_priorities_come_first_then_due_times_then_ids():
    """J3.1: the order of every claim."""
    low, high = [("c", 5, 2), ("d", 7, 2)], [("a", 9, 4), ("b", 9, 4)]
    assert merged(low, high) == ["a", "b", "c", "d"]
    assert merged([("b", 5, 2)], [("a", 5, 2)]) == ["a", "b"]


def test_waiting_raises_a_priority():
    """J3.1: by one for each interval, from the due time on."""
    waited, fresh = [("old", NOW - 200, 2)], [("new", NOW, 3)]
    assert merged(waited, fresh, boost_us=0) == ["new", "old"]
    assert merged(waited, fresh, boost_us=100) == ["old", "new"]
    assert merged([("early", NOW + 500, 3)], fresh, boost_us=100) == ["new", "early"], "not due counts as no wait"


def test_a_claim_ends_where_a_chunk_that_may_go_on_ends():
    """J3.1: behind its last row there may be jobs that come before those of other chunks."""
    first, second = [("a", 1, 2), ("b", 3, 2)], [("c", 2, 2), ("d", 9, 2)]
    assert merged(first, second, chunk=2) == ["a", "c", "b"]
    assert merged(first, second, chunk=3) == ["a", "c", "b", "d"], "a short chunk is whole"


def test_no_more_pass_a_gate_than_it_has_permits():
    """J3.4: what it keeps back does not stop the others."""
    first, second = [("a", 1, 2), ("b", 2, 2), ("c", 3, 2)], [("x", 9, 2)]
    assert merged(first, second, gates={"q0": 2}) == ["a", "b", "x"]
    assert merged(first, second, gates={"q0": 0}) == ["x"]
    assert merged(first, second, gates={"q0": 1}, chunk=3) == ["a", "x"], "what is shut does not go on"


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 9)), max_size=6), max_size=4),
    st.integers(1, 12),
)
def test_a_claim_of_whole_chunks_is_the_beginning_of_the_sorted_rows(levels: list[list[tuple[int, int]]], wanted: int):
    """J3.1: whatever waits where."""
    chunks = [
        sorted(
            ((f"{n}.{m}", due, priority) for m, (due, priority) in enumerate(rows)), key=lambda r: (-r[2], r[1], r[0])
        )
        for n, rows in enumerate(levels)
    ]
    everything = sorted((-priority, due, job) for rows in chunks for job, due, priority in rows)
    assert merged(*chunks, wanted=wanted, chunk=8) == [job for _, _, job in everything[:wanted]]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], ["a", "b", "c"]),
        ([Head("q9", 1, 0)], ["a", "b", "c"]),
        ([Head("q9", 2, NOW)], ["a"]),
        ([Head("q8", 1, 0), Head("q9", 2, NOW)], ["a"]),
        ([Head("q9", 3, NOW)], []),
    ],
)
def test_nothing_is_taken_that_could_rank_behind_a_level_that_was_left_out(others: list[Head], expected: list[str]):
    """J3.1: jobs of equal priority would have to be compared by their due times."""
    heads = [Head("q0", 3, 0), Head("q1", 2, 0)]
    chunks = [[("a", 1, 3)], [("b", 1, 2), ("c", 2, 2)]]
    asked = request(heads, wanted=10, chunk=8)._replace(others=others)
    assert [job for job, _ in merge_heads(heads, chunks, asked, NOW, {})] == expected


def test_chunks_are_powers_of_two():
    assert [at_least(number) for number in (0, 1, 2, 3, 4, 5, 64, 65)] == [1, 1, 2, 4, 4, 8, 64, 128]


def test_due_times_are_numbers():
    """SQLite keeps whatever was put there."""
    assert [is_time(due) for due in (1, 1.5, "soon", None)] == [True, True, False, False]
