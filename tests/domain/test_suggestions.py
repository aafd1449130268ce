"""Suggestions for names that are not known."""

import pytest

from windlass.domain.suggestions import closest, did_you_mean


@pytest.mark.parametrize(
    ("given", "found"),
    [("stats", "status"), ("quue", "queue"), ("status", "status"), ("zebra", None), ("", None), (7, None)],
)
def test_the_closest_known_name_is_found_if_one_is_close(given: object, found: str | None):
    """J10.7: names that are far from all others get no suggestion."""
    assert closest(given, ["queue", "status"]) == found
    assert did_you_mean(given, ["queue", "status"]) == ("" if found is None else f"; did you mean {found!r}?")


def test_nothing_is_suggested_where_nothing_is_known():
    assert did_you_mean("queue", []) == ""
