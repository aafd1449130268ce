"""Another program on the same file: `python -m tests.crash.programs.locker URL FILE`.

It holds the write lock until FILE exists, and knows nothing of Windlass. It prints `locked` and `released`.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.support.facts import path_of
from tests.support.waiting import until


def main(url: str, release: str) -> None:
    with closing(sqlite3.connect(path_of(url), timeout=30, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        until(Path(release).exists, "the file", 120)
        connection.execute("ROLLBACK")
        print("released", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
