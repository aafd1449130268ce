"""A statement as PostgreSQL takes it, and what it answers as libpq has it: a result that is good, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

_BAD = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.PIPELINE_ABORTED)


class Statement(NamedTuple):
    """A statement as the server takes it: `$1`, `$2` … stand for the parameters of these names."""

    text: bytes
    names: tuple[str, ...]
    kind: str


COMMAND: Final = "command"
BEGIN: Final = Statement(b"BEGIN", (), COMMAND)
COMMIT: Final = Statement(b"COMMIT", (), COMMAND)
ROLLBACK: Final = Statement(b"ROLLBACK", (), COMMAND)


def good(results: Sequence[pq.abc.PGresult], encoding: str) -> Sequence[pq.abc.PGresult]:
    """Return the results, if none of them is an error: a commit that fails says so after the statement's own answer."""
    for result in results:
        if result.status in _BAD:
            raise _error(result, encoding)
    return results


def _error(result: pq.abc.PGresult, encoding: str) -> psycopg.Error:
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # not the server's words: libpq's, on a lost connection
        return psycopg.OperationalError(pq.error_message(result, encoding))
    return error_from_result(result, encoding)
