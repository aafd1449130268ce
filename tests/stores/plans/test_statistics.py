"""Sums of counts, whatever they are and in whatever batches they come."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.stores.plans.statistics import Delta, QueueTotals, add_up

counts = st.integers(0, 2**40)
deltas: st.SearchStrategy[list[Delta]] = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abc"), counts, counts, counts, counts, counts, counts)
)


def total(rows: list[Delta]) -> QueueTotals:
    return QueueTotals(*map(sum, zip(*(row[2:] for row in rows), strict=True))) if rows else QueueTotals()


@given(deltas, st.integers(0, 100))
def test_adding_up_keeps_every_sum_and_leaves_one_row_for_each_minute_and_queue(rows: list[Delta], cut: int):
    """J7.5: in one batch as in several."""
    once = add_up(rows)
    assert total(once) == total(rows)
    assert [row[:2] for row in once] == sorted({row[:2] for row in rows})
    assert add_up(add_up(rows[:cut]) + add_up(rows[cut:])) == once
