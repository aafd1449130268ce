"""What the server answered, as libpq has it: a result that is good, or the error it stands for."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

_BAD = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.PIPELINE_ABORTED)


def good(results: Sequence[pq.abc.PGresult], encoding: str, at: int = -1) -> pq.abc.PGresult:
    """The result there, if none of them is an error: a commit that fails says so after the statement's own answer."""
    for result in results:
        if result.status in _BAD:
            raise _error(result, encoding)
    return results[at]


def _error(result: pq.abc.PGresult, encoding: str) -> psycopg.Error:
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # not the server's words: libpq's, on a lost connection
        return psycopg.OperationalError(pq.error_message(result, encoding))
    return error_from_result(result, encoding)
