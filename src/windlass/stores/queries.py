"""Named statements: `plans/sql/*.sql` first, then those of the database (`postgres/sql`, `sqlite/sql`), which may
override a name.

A statement starts with `-- name: claim :rows`. Kinds: `:rows` all rows, `:row` the first or None, `:count` rows
touched, `:fragment` no statement but a piece that others of its dialect name in braces. Parameters are written
`:name`; `{now}` is the store's clock, and `{moment}`, where there are locks to wait for, is its time after the wait;
`{word}` literals are whole numbers given by the plan.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import NamedTuple

_HEADER = re.compile(r"^-- name: (\w+) :(rows|row|count|fragment)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


class Query(NamedTuple):
    """One statement, as written in its file."""

    name: str
    kind: str
    sql: str
    source: str


@cache
def load(dialect: str) -> dict[str, Query]:
    """Every statement a dialect knows, by name."""
    queries = {**_folder("plans"), **_folder(dialect)}
    fragments = {f"{{{query.name}}}": query.sql for query in queries.values() if query.kind == "fragment"}
    return {name: _complete(query, fragments) for name, query in queries.items() if query.kind != "fragment"}


def overrides(dialect: str) -> set[str]:
    """Names that the dialect's files define although the common files do too."""
    return _folder("plans").keys() & _folder(dialect).keys()


def to_pyformat(sql: str) -> str:
    """`:name` → `%(name)s`, for drivers that want it so."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


def to_numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """`:name` → `$1`, as PostgreSQL itself wants it, and which name each number stands for."""
    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", sql)
    return text, tuple(numbers)


def _complete(query: Query, fragments: dict[str, str]) -> Query:
    """Pieces may be made of pieces."""
    sql, before = query.sql, ""
    while sql != before:
        before = sql
        for place, piece in fragments.items():
            sql = sql.replace(place, piece)
    return query._replace(sql=sql)


def _folder(name: str) -> dict[str, Query]:
    folder = resources.files("windlass.stores").joinpath(name).joinpath("sql")
    found: dict[str, Query] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for query in _parse(file.read_text(encoding="utf-8"), f"{name}/{file.name}"):
                if query.name in found:
                    raise ValueError(
                        f"statement {query.name!r} stands twice: in {found[query.name].source} and {query.source}"
                    )
                found[query.name] = query
    return found


def _parse(text: str, source: str) -> list[Query]:
    parts = _HEADER.split(text)[1:]
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [Query(name, kind, _body(sql), source) for name, kind, sql in triples]


def _body(sql: str) -> str:
    lines = [line for line in sql.strip().splitlines() if not line.lstrip().startswith("--")]
    return "\n".join(lines).rstrip().rstrip(";")
