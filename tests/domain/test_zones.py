"""Time zones and their clocks."""

from datetime import UTC, datetime

import pytest

from windlass import InvalidOptionError
from windlass.domain.zones import wall_clock


def seconds(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]


def test_a_wall_time_occurs_once_twice_or_never():
    """J9.1: on the clock of Berlin, 2027."""
    berlin = wall_clock("Europe/Berlin")
    assert berlin.occurrences(seconds(2027, 6, 1, 12)) == (seconds(2027, 6, 1, 10),)
    assert berlin.occurrences(seconds(2027, 10, 31, 2, 30)) == (
        seconds(2027, 10, 31, 0, 30),
        seconds(2027, 10, 31, 1, 30),
    )
    assert berlin.occurrences(seconds(2027, 3, 28, 2, 30)) == ()
    assert berlin.gap_end(seconds(2027, 3, 28, 2, 30)) == seconds(2027, 3, 28, 1)
    assert berlin.wall(seconds(2027, 3, 28, 1)) == seconds(2027, 3, 28, 3)


def test_a_gap_may_be_a_whole_day():
    """J9.1: Samoa went from 29 to 31 December 2011."""
    apia = wall_clock("Pacific/Apia")
    for hour in (0, 12, 23):
        assert apia.occurrences(seconds(2011, 12, 30, hour)) == ()
        assert apia.gap_end(seconds(2011, 12, 30, hour)) == seconds(2011, 12, 30, 10)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", ""),
        ("America", ""),  # a folder
        ("", ""),
        ("../../etc/passwd", ""),
        ("/etc/localtime", ""),
        ("localtime", ""),  # a node's own zone never counts
        ("right/Europe/Berlin", ""),  # counts leap seconds
        ("Europe/Berlin\0", ""),
        (None, ""),
        (["UTC"], ""),
        (5, ""),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name: str, suggestion: str):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match="expected a time zone by its IANA name") as caught:
        wall_clock(name)
    assert repr(name) in str(caught.value)
    assert suggestion in str(caught.value)
    assert "did you mean 'localtime'" not in str(caught.value)
