"""Array literals and COPY lines, built here because they are on the hot path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def ids(values: Iterable[str]) -> str:
    """Return an array literal of ids: nothing in it needs quoting."""
    return "{" + ",".join(values) + "}"


def numbers(values: Iterable[int | None]) -> str:
    """Return an array literal of numbers, e.g. `{1, NULL, 3}`."""
    return "{" + str(list(values))[1:-1].replace("None", "NULL") + "}"


def texts(values: Iterable[str | None]) -> str:
    r"""Return an array literal of texts, each quoted, e.g. `{"a \"b\"",NULL}`."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(value: str) -> str:
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if '"' in value:
        value = value.replace('"', '\\"')
    return f'"{value}"'


def copy_lines(columns: Iterable[Sequence[str | int | None]]) -> str:
    """Return lines in COPY's text format, from the values of each column."""
    return "\n".join(map("\t".join, zip(*map(_copy_column, columns), strict=True))) + "\n"


def _copy_column(values: Sequence[str | int | None]) -> Sequence[str]:
    """Convert a column; most have one value for all rows, which is converted once."""
    if values.count(values[0]) == len(values):
        return [_copy_text(values[0])] * len(values)
    return [_copy_text(value) for value in values]


def _copy_text(value: str | int | None) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, int):
        return str(value)
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if not value.isprintable():
        value = value.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return value
