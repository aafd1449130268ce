"""Named statements: `plans/sql/*.sql` first, then those of the database (`postgres/sql`, `sqlite/sql`), which may
override a name.

A statement starts with `-- name: claim :rows`. Kinds: `:rows` all rows, `:row` the first or None, `:count` rows
touched. Others are pieces that statements name in braces: `:fragment` a text; `:table` the columns and types of rows
that come as one JSON text, `:rows`, in that order; `:arrays` the same of rows that come as one array per column;
`:bulk` the same in the form that is fastest on the database, given by `Dialect.bulk`.
`{h.id = j.id}` in a join is the lookup of `h` by the index on its column, and no other way to join.
Lists of columns (`{job_columns}`) are those of `windlass.stores.columns`. Parameters are written `:name`; `{now}` is
the store's clock, and `{moment}`, where there are locks to wait for, is its time after the wait; `{word}` literals are
whole numbers given by the plan.
"""

from __future__ import annotations

import re
from functools import cache, partial
from importlib import resources
from typing import NamedTuple

from windlass.stores.columns import LISTS, NEW_JOB_TYPES

_PIECES = {"fragment": "", "table": "json", "arrays": "array", "bulk": "bulk"}
"""Kinds that are no statements, and for tables the fragments of the dialect that make them: `json_table`, `array_table`
around a `json_column`, `array_column` for each column; which of both for `:bulk` is the fragment `bulk_form`."""
_HEADER = re.compile(rf"^-- name: (\w+) :(rows|row|count|{'|'.join(_PIECES)})\s*$", re.MULTILINE)
_COLUMNS = re.compile(r"\{(?:(\w)\.|(\w)\|(\w)\.|(:))?(\w+)_columns\}")
_LOOKUP = re.compile(r"\{(\w+\.\w+) = (\w+\.\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


class Query(NamedTuple):
    """One statement, as written in its file."""

    name: str
    kind: str
    sql: str
    source: str


@cache
def load(dialect: str) -> dict[str, Query]:
    """Return every statement of a dialect, by name."""
    queries = {**_folder("plans"), **_folder(dialect)}
    texts = {query.name: query.sql for query in queries.values() if query.kind == "fragment"}
    texts["new_job_types"] = ", ".join(f"{name} {kind}" for name, kind in NEW_JOB_TYPES.items())
    tables = {query.name: _table(query, texts) for query in queries.values() if _PIECES.get(query.kind)}
    fragments = {f"{{{name}}}": text for name, text in (texts | tables).items()}
    return {name: _complete(query, fragments) for name, query in queries.items() if query.kind not in _PIECES}


@cache
def bulk_columns(dialect: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the columns and types of every table of the kind `:bulk`, by its name."""
    queries = {**_folder("plans"), **_folder(dialect)}
    return {query.name: tuple(_columns(query.sql)) for query in queries.values() if query.kind == "bulk"}


def to_pyformat(sql: str) -> str:
    """Convert `:name` to `%(name)s`, for drivers that need it."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


def to_numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Convert `:name` to `$1` as PostgreSQL needs it; return also the name of each number."""
    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", sql)
    return text, tuple(numbers)


def _complete(query: Query, fragments: dict[str, str]) -> Query:
    """Fill in fragments, which may contain fragments."""
    sql, before = query.sql, ""
    while sql != before:
        before = sql
        for name, text in fragments.items():
            sql = sql.replace(name, text)
        sql = _COLUMNS.sub(_list, sql)
        sql = _LOOKUP.sub(partial(_lookup, fragments["{lookup}"]), sql)
    return query._replace(sql=sql)


def _lookup(form: str, found: re.Match[str]) -> str:
    """Return the condition by which rows are looked up, in the dialect's form."""
    return form.replace("{column}", found[1]).replace("{value}", found[2])


def _list(found: re.Match[str]) -> str:
    """Return columns as `columns` describes them: plain, of a table, of the first of two tables, or as parameters."""
    table, first, second, parameter, name = found.groups()
    form = f"{table}.%s" if table else f"coalesce({first}.%s, {second}.%s)" if first else f"{parameter or ''}%s"
    return ", ".join(form.replace("%s", column) for column in LISTS[name])


def _table(query: Query, texts: dict[str, str]) -> str:
    """Return rows of parameters as a table, in the dialect's form."""
    way = texts["bulk_form"] if query.kind == "bulk" else _PIECES[query.kind]
    body = query.sql.replace("{new_job_types}", texts["new_job_types"])
    columns = _columns(body)
    each = texts[f"{way}_column"]
    made = [
        each.replace("{position}", str(position)).replace("{name}", name).replace("{type}", texts[kind])
        for position, (name, kind) in enumerate(columns)
    ]
    whole = texts[f"{way}_table"].replace("{columns}", ", ".join(made))
    return whole.replace("{names}", ", ".join(name for name, _ in columns))


def _columns(body: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (column.split() for column in body.split(","))]


def _folder(name: str) -> dict[str, Query]:
    folder = resources.files("windlass.stores").joinpath(name).joinpath("sql")
    found: dict[str, Query] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for query in _parse(file.read_text(encoding="utf-8"), f"{name}/{file.name}"):
                if query.name in found:
                    raise ValueError(
                        f"statement {query.name!r} is defined twice: in {found[query.name].source} and {query.source}"
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
