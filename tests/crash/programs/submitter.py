"""A caller: `python -m tests.crash.programs.submitter URL KIND NUMBER`. It prints `stored ID DUPLICATE` for each job.

KIND is `one`, `keyed`, `many` (ten jobs), `async`, or `own` (in a transaction of its own, on its own connection).
"""

import asyncio
import sqlite3
import sys
from contextlib import closing

import psycopg

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import is_sqlite, path_of
from windlass import JobHandle, Windlass

MANY = 10


def stored(app: Windlass, url: str, kind: str, number: int) -> list[JobHandle[int]]:
    call = app.bind(bodies.pay, number)
    match kind:
        case "keyed":
            return [call.using(idempotency_key=f"idem-{number}", business_key=f"key-{number}", tags=["t"]).enqueue()]
        case "many":
            return app.enqueue_many([app.bind(bodies.pay, number + n) for n in range(MANY)])
        case "async":
            return [asyncio.run(aenqueue(app, number))]
        case "own":
            return [in_a_transaction(app, url, number)]
        case _:
            return [call.enqueue()]


async def aenqueue(app: Windlass, number: int) -> JobHandle[int]:
    return await app.bind(bodies.pay, number).aenqueue()


def in_a_transaction(app: Windlass, url: str, number: int) -> JobHandle[int]:
    call = app.bind(bodies.pay, number)
    if is_sqlite(url):
        with closing(sqlite3.connect(path_of(url))) as connection, connection:
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            return call.using(connection=connection).enqueue()
    with psycopg.connect(url) as server:
        return call.using(connection=server).enqueue()


def main(url: str, kind: str, number: str) -> None:
    app = make_app(url)
    for handle in stored(app, url, kind, int(number)):
        print(f"stored {handle.id} {handle.duplicate}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
