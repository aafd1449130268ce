"""Ways to damage the rows of a job, past Windlass, and what must become of it."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any, NamedTuple

import psycopg

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = 2**63 - 1
POISON = ("FAILED", "poison_payload")
PAUSED = ("PAUSED", None)
GONE = ("gone", None)
WAITS = ("PENDING", None)
RUNS = ("SUCCEEDED", None)


class Damage(NamedTuple):
    """A column that is set to something else, and how the job then ends."""

    table: str
    column: str
    value: Any
    ends: tuple[str, str | None] = POISON


def _options(*texts: str) -> Iterable[Damage]:
    return (Damage("job", "options", text) for text in texts)


EVERYWHERE = (
    *_options('{"timeout":"x"}', '{"timeout":-1}', '{"timeout":true}', '{"timeout":1e300}', '{"timeout":[]}'),
    *_options('{"max_retries":"many"}', '{"max_retries":-1}', '{"max_retries":1e30}', '{"executor":7}'),
    *_options('{"executor":"rocket"}', "[]", "7", "null", "no JSON", '{"timeout":1', "\ufeff{}", f'{{"x":{DEEP}}}'),
    *_options('{"backoff":7}', '{"backoff":["fixed",1e99]}', '{"backoff":["fixed","x"]}', '{"retry_on":7}'),
    *_options('{"on_success":7}', '{"on_success":{"target":1}}', '{"on_failure":{"target":"a:b","args":"x"}}'),
    *_options('{"on_success":{"target":"a:b","args":[[],{}],"priority":99999}}'),
    *_options('{"on_failure":{"target":"a:b","args":[[],{}],"delay_us":9223372036854775807}}'),
    *_options('{"on_failure":{"target":"a:b","args":[[1],{}],"marks":{"0":"nonsense"}}}'),
    *(
        Damage("job", "args", text)
        for text in ("no JSON", "7", "null", "{}", "[]", "[[],[]]", "[1,2]", "[[1,2,3,4],{}]")
    ),
    *(Damage("job", "args", text) for text in (DEEP, f"[[{DEEP},1],{{}}]", '[["x","y"],{}]', '[[1,2],{"z":1}]', "")),
    *(Damage("job", "params", text) for text in ("no JSON", "[]", "7", DEEP)),
    *(Damage("job", "tags", text, RUNS) for text in ("no JSON", "7", '{"a":1}', "[1,2]", DEEP)),
    *(Damage("job", "created_at", number) for number in (HUGE, -HUGE)),
    *(Damage("hot", "fence", number) for number in (HUGE, HUGE - 1)),
    *(Damage("hot", "attempts", number) for number in (2**31 - 1, -7)),
    *(Damage("hot", "crash_count", number) for number in (2**31 - 1, -7)),
    Damage("hot", "due", -HUGE),
    Damage("hot", "due", HUGE, WAITS),
    Damage("hot", "expires", HUGE),
    Damage("hot", "priority", 99, WAITS),
    Damage("hot", "priority", -1, WAITS),
    Damage("hot", "lane", "nonsense and more", RUNS),
    Damage("hot", "lane", "", RUNS),
    Damage("hot", "lane", "resource:", ("FAILED", "non_retryable")),
    Damage("hot", "holds", "no JSON", RUNS),
    Damage("hot", "status", "BOGUS", PAUSED),
    Damage("hot", "target", "", WAITS),
    Damage("hot", "target", "\n:\u202e", WAITS),
)
SQLITE = (
    *(Damage("hot", column, "text") for column in ("fence", "attempts", "crash_count")),
    *(Damage("hot", column, b"\xff") for column in ("fence", "attempts", "crash_count")),
    Damage("hot", "due", "soon", WAITS),
    Damage("hot", "due", b"\xff", WAITS),
    Damage("hot", "expires", "never"),
    Damage("hot", "priority", "high", WAITS),
    Damage("hot", "lane", b"\xff", RUNS),
    Damage("job", "created_at", "yesterday"),
    *(Damage("job", column, b"\xff\xfe") for column in ("args", "options", "params")),
    Damage("job", "tags", b"\xff\xfe", RUNS),
)
"""What PostgreSQL does not keep: numbers that are none, texts that are bytes."""


def execute(url: str, sql: str, *values: Any) -> None:
    """Write past Windlass, with `?` for values."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection, connection:
            connection.execute(sql, values)
        return
    with psycopg.connect(url) as server:
        server.execute(sql.replace("?", "%s").encode(), values)
