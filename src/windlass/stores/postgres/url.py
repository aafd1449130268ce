"""PostgreSQL URLs: their parts, the options that Windlass adds, and errors for URLs that libpq refuses."""

from __future__ import annotations

import re
import socket
from difflib import get_close_matches
from os import getpid
from typing import Any, Final

import psycopg
from psycopg import pq

from windlass.domain.identity import process_name
from windlass.errors import ConfigurationError

CONNECT_TIMEOUT: Final = 5
_SOCKET: Final[dict[str, int]] = {
    "connect_timeout": CONNECT_TIMEOUT,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
GENERIC_PLANS: Final = "-c plan_cache_mode=force_generic_plan"
"""No statement needs a plan for its values, and planning a claim takes as long as running a small one."""
_PLANNER: Final = {
    # A plan is kept, and may have been made while a table was empty: reading it from end to end, or sorting what is
    # due, costs nothing then, and stops a worker once a hundred thousand jobs are there. All that statements need of
    # large tables they find in the order of an index. Without JIT: estimated costs are meaningless here.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
"""What keeps plans independent of statistics, which may have been taken at the worst moment."""
_SESSION: Final = {
    # A worker that hangs, or whose machine is gone, in the middle of a transaction must not hold the locks on its jobs
    # against the nodes that recover them. The server ends its transaction after this time.
    "idle_in_transaction_session_timeout": "10s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
}
_BAD_PARAMETER: Final = re.compile(r'URI query parameter: "(\w+)"')


def parts_of(url: str) -> dict[str, Any]:
    """Return the parts of a URL by libpq's names. libpq's own message is not shown: it may contain the password."""
    try:
        return dict(psycopg.conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError as error:
        named = _BAD_PARAMETER.search(str(error))
        raise ConfigurationError(_parameter_refused(named[1]) if named else _UNREADABLE) from None


_UNREADABLE: Final = (
    "the PostgreSQL URL cannot be read; write it as postgresql://user:password@host:5432/database, "
    "with special characters of user and password percent-encoded (% as %25)"
)


def _parameter_refused(name: str) -> str:
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    if name in known:
        return f"the option {name!r} of the PostgreSQL URL cannot be read; write it as ?{name}=value, percent-encoded"
    close = get_close_matches(name, [*known, "pooled"], n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"the PostgreSQL URL has an unknown option {name!r} after its question mark; {meant}"
        "expected are options of libpq, such as sslmode=require, and pooled=true"
    )


def conninfo(url: str, *, pooled: bool) -> str:
    """Return the URL with options that detect a dead network within seconds on both sides, unless the user set them.

    Also adds a name for `pg_stat_activity`, unless the URL, PGAPPNAME or a service file has one.
    """
    given = psycopg.conninfo.conninfo_to_dict(url)
    added: dict[str, Any] = {key: value for key, value in _SOCKET.items() if key not in given}
    if "fallback_application_name" not in given:
        added["fallback_application_name"] = f"windlass {process_name(socket.gethostname(), getpid())}"
    if not pooled:  # a pooler accepts no options for its server connections
        options = str(given.get("options") or "")
        wanted = {**_PLANNER, **_SESSION}
        ours = [f"-c {name}={value}" for name, value in wanted.items() if f"{name}=" not in options]
        added["options"] = " ".join([options, GENERIC_PLANS, *ours]).strip()
    return psycopg.conninfo.make_conninfo(url, **added)
