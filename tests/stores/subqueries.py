"""Finds subqueries in FROM that have no alias: PostgreSQL 15 refuses them, 16 and newer do not."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_][\w.]*|[(),]|\S")
_FROM = {"FROM", "JOIN", "USING", "LATERAL"}
_OTHER_CLAUSES = {
    *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "RETURNING", "SET", "VALUES", "ON", "FOR"),
    *("UNION", "EXCEPT", "INTERSECT", "WINDOW"),
}
_NO_ALIAS = _FROM | _OTHER_CLAUSES | {"CROSS", "LEFT", "RIGHT", "FULL", "INNER", "NATURAL", "WHEN"}


def unnamed_subqueries(sql: str) -> list[str]:
    """The beginning of each subquery in FROM that is not followed by a name."""
    tokens = [token for token in _TOKEN.findall(sql) if not token.startswith("--")]
    return [" ".join(tokens[start : start + 8]) for start in _subqueries_in_from(tokens) if not _named(tokens, start)]


def _subqueries_in_from(tokens: list[str]) -> Iterator[int]:
    """Where each of them opens. The innermost open parenthesis has the clause that is being read."""
    clauses = [""]
    for place, token in enumerate(tokens):
        word = token.upper()
        if token == "(":
            if clauses[-1] == "FROM" and _opens_query(tokens, place):
                yield place
            clauses.append("FROM" if clauses[-1] == "FROM" and tokens[place + 1] == "(" else "")
        elif token == ")":
            clauses.pop()
        elif word in _FROM:
            clauses[-1] = "FROM"
        elif word in _OTHER_CLAUSES:
            clauses[-1] = word


def _opens_query(tokens: list[str], place: int) -> bool:
    before, after = tokens[place - 1].upper(), tokens[place + 1].upper()
    return (before in _FROM or before == ",") and after in {"SELECT", "WITH", "VALUES", "("}


def _named(tokens: list[str], start: int) -> bool:
    depth = 0
    for place in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place], 0)
        if depth == 0:
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            return after.upper() not in _NO_ALIAS and re.match(r"[A-Za-z_\"]", after) is not None
    raise ValueError(f"a parenthesis is not closed: {' '.join(tokens[start:])}")
