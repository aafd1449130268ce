"""PostgreSQL's text forms, built here because they are the hot path: array literals and COPY lines."""

from __future__ import annotations

from collections.abc import Iterable


def ids(values: Iterable[str]) -> str:
    """An array literal of ids: nothing in it needs quoting."""
    return "{" + ",".join(values) + "}"


def numbers(values: Iterable[int | None]) -> str:
    """An array literal of numbers, e.g. `{1, NULL, 3}`."""
    return "{" + str(list(values))[1:-1].replace("None", "NULL") + "}"


def texts(values: Iterable[str | None]) -> str:
    """An array literal of texts, each quoted, e.g. `{"a \\"b\\"",NULL}`."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(value: str) -> str:
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if '"' in value:
        value = value.replace('"', '\\"')
    return f'"{value}"'


def copy_texts(texts: Iterable[str | None]) -> str:
    """Columns of a line in COPY's text format, escaped."""
    return "\t".join(["\\N" if text is None else _copy_text(text) for text in texts])


def _copy_text(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text or "\t" in text or "\r" in text:
        text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return text
