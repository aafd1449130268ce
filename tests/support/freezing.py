"""Stopping a process between two of its writes."""

import fcntl
from collections.abc import Iterator
from contextlib import AbstractContextManager as ContextManager
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from tests.support.facts import is_sqlite, path_of


def while_nobody_writes(url: str) -> ContextManager[None]:
    """Hold the lock that writers of a SQLite file queue for; a process that is stopped meanwhile holds no lock.

    A process stopped in the middle of a write keeps its locks, and all others wait until it goes on. That is SQLite,
    it is not what these tests are about. A PostgreSQL server finishes a statement whatever its client does.
    """
    return _locks(path_of(url)) if is_sqlite(url) else nullcontext()


@contextmanager
def _locks(path: str) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("turnstile", "lock"):
            file = stack.enter_context(Path(f"{path}-{name}").open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
