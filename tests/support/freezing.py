"""Stopping a process between two of its writes."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager as ContextManager
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from tests.support.facts import is_sqlite, path_of, rows
from tests.support.programs import Program
from tests.support.waiting import until


def while_no_write_runs(url: str) -> ContextManager[None]:
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


def freeze_between_writes(program: Program, url: str) -> bool:
    """Stop a process; return False, and let it go on, if that was in the middle of a transaction, which holds locks."""
    with while_no_write_runs(url):
        program.freeze()
    if is_sqlite(url):
        return True
    for _ in range(2):  # twice: on a busy machine a session may look idle that has not read its next message yet
        if until(lambda: _settled(program, url), "the server to carry out what was sent") != {"idle"}:
            program.resume()
            return False
        threading.Event().wait(0.5)
    return True


def _settled(program: Program, url: str) -> set[str] | None:
    """Return the states of a process's sessions once none of them will change while the process is stopped.

    A session in the middle of a message is active and waits for the rest of it, without a time limit. libpq sends a
    pipeline of more than 64 KiB in parts, so that a process may be stopped between a write and its COMMIT.
    """
    question = f"""SELECT state, coalesce(wait_event_type, '') FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'windlass %-{program.pid}'"""
    sessions = rows(url, question)
    assert sessions, "the process has no session"
    if all(state == "idle" or waits_for in ("Client", "Lock") for state, waits_for in sessions):
        return {state for state, _ in sessions}
    return None
