"""Statements in PostgreSQL's own form, and the check of libpq's results for errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

_BAD = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.PIPELINE_ABORTED)


class Statement(NamedTuple):
    """A statement with parameters `$1`, `$2` …, which stand for `names`."""

    text: bytes
    names: tuple[str, ...]
    kind: str


COMMAND: Final = "command"
BEGIN: Final = Statement(b"BEGIN", (), COMMAND)
COMMIT: Final = Statement(b"COMMIT", (), COMMAND)
ROLLBACK: Final = Statement(b"ROLLBACK", (), COMMAND)


def checked(results: Sequence[pq.abc.PGresult], encoding: str) -> Sequence[pq.abc.PGresult]:
    """Return the results; raise if any is an error: a failed commit comes after the result of its statement."""
    for result in results:
        if result.status in _BAD:
            raise _error(result, encoding)
    return results


def _error(result: pq.abc.PGresult, encoding: str) -> psycopg.Error:
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # from libpq, on a lost connection
        return psycopg.OperationalError(pq.error_message(result, encoding))
    return error_from_result(result, encoding)
