"""The fields of cron expressions: what each takes, and what it says of the rest."""

import pytest

from windlass import InvalidOptionError
from windlass.domain.cron import Cron
from windlass.domain.cron_fields import HOUR, MINUTE, MONTH, QUARTZ_WEEKDAY, UNIX_DAY, UNIX_WEEKDAY, YEAR, Field, values


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("*", HOUR, set(range(24))),
        ("5", MINUTE, {5}),
        ("05", MINUTE, {5}),
        ("1-4", MINUTE, {1, 2, 3, 4}),
        ("1-4,7,58/1", MINUTE, {1, 2, 3, 4, 7, 58, 59}),
        ("*/20", MINUTE, {0, 20, 40}),
        ("50/5", MINUTE, {50, 55}),
        ("10-20/5", MINUTE, {10, 15, 20}),
        ("22-2", HOUR, {22, 23, 0, 1, 2}),
        ("22-4/3", HOUR, {22, 1, 4}),
        ("30-2", UNIX_DAY, {30, 31, 1, 2}),
        ("JAN,DEC", MONTH, {1, 12}),
        ("NOV-FEB", MONTH, {11, 12, 1, 2}),
        ("2027-2030/2", YEAR, {2027, 2029}),
        ("0", UNIX_WEEKDAY, {0}),
        ("7", UNIX_WEEKDAY, {0}),
        ("0-7", UNIX_WEEKDAY, set(range(7))),
        ("5-7", UNIX_WEEKDAY, {5, 6, 0}),
        ("6-1", UNIX_WEEKDAY, {6, 0, 1}),
        ("7-1", UNIX_WEEKDAY, {0, 1}),
        ("FRI-MON", UNIX_WEEKDAY, {5, 6, 0, 1}),
        ("*/2", UNIX_WEEKDAY, {0, 2, 4, 6}),
        ("1/3", UNIX_WEEKDAY, {1, 4}),
        ("SUN", QUARTZ_WEEKDAY, {1}),
        ("FRI-MON", QUARTZ_WEEKDAY, {6, 7, 1, 2}),
    ],
)
def test_the_values_of_a_field(text: str, field: Field, expected: set[int]):
    """J9.1."""
    assert values(text, field) == expected


@pytest.mark.parametrize(
    ("expression", "field", "takes", "got"),
    [
        ("61 2 * * *", "minute", "0-59", "61"),
        ("-1 2 * * *", "minute", "0-59", "-1"),
        ("1, 2 * * *", "minute", "0-59", ""),
        ("1.5 2 * * *", "minute", "0-59", "1.5"),
        ("0 24 * * *", "hour", "0-23", "24"),
        ("0 2am * * *", "hour", "0-23", "2AM"),
        ("0 2 0 * *", "day-of-month", "1-31", "0"),
        ("0 2 32 * *", "day-of-month", "1-31", "32"),
        ("0 2 * 13 *", "month", "1-12 or JAN-DEC", "13"),
        ("0 2 * foo *", "month", "1-12 or JAN-DEC", "FOO"),
        ("0 2 * * 8", "day-of-week", "0-7 or SUN-SAT", "8"),
        ("0 2 * * frog", "day-of-week", "0-7 or SUN-SAT", "FROG"),
        ("60 0 2 * * ?", "second", "0-59", "60"),
        ("0 60 2 * * ?", "minute", "0-59", "60"),
        ("0 0 2 32 * ?", "day-of-month", "?, L, L-n, nW, LW", "32"),
        ("0 0 2 0W * ?", "day-of-month", "nW", "0W"),
        ("0 0 2 L-31 * ?", "day-of-month", "L-n", "L-31"),
        ("0 0 2 ? * 0", "day-of-week", "1-7 or SUN-SAT", "0"),
        ("0 0 2 ? * 8", "day-of-week", "1-7 or SUN-SAT", "8"),
        ("0 0 2 ? * FRI#6", "day-of-week", "n#k", "FRI#6"),
        ("0 0 2 ? * FRI#0", "day-of-week", "n#k", "FRI#0"),
        ("0 0 2 ? * 9L", "day-of-week", "nL", "9L"),
        ("0 0 2 * * ? 1969", "year", "1970-2099", "1969"),
        ("0 0 2 * * ? 2100", "year", "1970-2099", "2100"),
        ("0 0 2 * * ? 2031-2030", "year", "1970-2099", "2031-2030"),
        ("0 0 ? * * ?", "hour", "0-23", "?"),
        ("\u0665 2 * * *", "minute", "0-59", "\u0665"),  # a digit, but not one of ours
    ],
)
def test_an_error_names_the_field_the_allowed_values_and_the_given_one(
    expression: str, field: str, takes: str, got: str
):
    """J9.1: fails where it is written, naming the field."""
    with pytest.raises(InvalidOptionError, match="expected a cron expression") as caught:
        Cron.parse(expression)
    said = str(caught.value).partition(f"got {expression!r}: ")[2]
    assert said.startswith(f"its {field} takes ")
    assert takes in said
    assert f", not {got!r}" in said


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("*/0 2 * * *", "steps are from 1 to 59"),
        ("*/90 * * * *", "every(…) has longer intervals"),
        ("0 */24 * * *", "steps are from 1 to 23"),
        ("0 2 L * *", "are for expressions of 6 fields"),
        ("0 2 ? * *", "are for expressions of 6 fields"),
        ("0 2 * * 5#2", "are for expressions of 6 fields"),
        ("0 2 15W * *", "are for expressions of 6 fields"),
        ("0 0 2 1 * MON", "are both given; one of them must be '?'"),
        ("0 0 2 */2 * MON", "are both given; one of them must be '?'"),
        ("0 0 2 ? * ?", "are both '?'"),
    ],
)
def test_an_error_says_what_to_write_instead(expression: str, says: str):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match="expected a cron expression") as caught:
        Cron.parse(expression)
    assert says in str(caught.value)


@pytest.mark.parametrize("expression", ["0 2 31 2 *", "0 0 2 30 2 ?", "0 0 2 31W 4,6 ?", "0 0 0 29 2 ? 2025-2027"])
def test_an_expression_that_never_fires_is_refused(expression: str):
    """J9.1: within 100 years, or within its own."""
    with pytest.raises(InvalidOptionError, match=r"it never fires.* (within 100 years|in the years it names)"):
        Cron.parse(expression)
