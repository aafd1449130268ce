"""A process that holds the lock file of a SQLite database: `python -m tests.crash.programs.lock_file PATH`.

It prints `locked`, and holds it until it is killed.
"""

import signal
import sys

from windlass.stores.sqlite.files import WriteLock

if __name__ == "__main__":
    with WriteLock(sys.argv[1]).held():
        print("locked", flush=True)
        signal.pause()
