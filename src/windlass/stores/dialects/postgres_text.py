"""PostgreSQL's text forms, built here because they are the hot path: array literals and COPY lines."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID


def array(values: Iterable[str | int | UUID | None]) -> str:
    """An array literal, e.g. `{1,NULL,"a \\"b\\""}`: text is always quoted, numbers and ids never need to be."""
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: str | int | UUID | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if "\\" in value:
            value = value.replace("\\", "\\\\")
        if '"' in value:
            value = value.replace('"', '\\"')
        return f'"{value}"'
    return str(value)


def copy_line(plain: Iterable[str], texts: Iterable[str | None], last: str) -> str:
    """One line of COPY's text format; `plain` and `last` are known to need no escaping."""
    return "\t".join([*plain, *[_copy_text(text) for text in texts], last]) + "\n"


def _copy_text(text: str | None) -> str:
    if text is None:
        return "\\N"
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text or "\t" in text or "\r" in text:
        text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return text
