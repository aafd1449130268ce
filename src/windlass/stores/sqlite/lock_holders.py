"""The holder of a lock that a writer waits for, from the kernel's table of locks (Linux only).

The files themselves are never opened for this: closing any descriptor of a file drops the locks that SQLite holds on it
for this process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

TABLE: Final = Path("/proc/locks")
WAL_WRITE: Final = (120, 120)
"""The byte of the shared-memory file that a writer locks, in WAL mode."""

OWN_TRANSACTION: Final = (
    "an open transaction of this program: commit it first, or pass its connection as connection= "
    "so that the job becomes part of it"
)
UNKNOWN: Final = "another process, or by an open transaction of this program (commit it, or pass it as connection=)"


def holder_of(path: str, *, own_writer_writes: bool) -> str:
    """Return what keeps others from writing to the database at `path`, for the sentence "it is locked by …"."""
    if own_writer_writes:
        return "this program's own writer, which has not finished a transaction yet"
    locks = _locks()
    if not locks:
        return UNKNOWN
    in_sqlite = _found(locks, f"{path}-shm", "POSIX", WAL_WRITE) or _found(locks, path, "POSIX")
    at_lock_file = _found(locks, f"{path}-lock", "FLOCK")
    if in_sqlite == os.getpid():
        return OWN_TRANSACTION
    holder = in_sqlite or at_lock_file
    if holder is None or holder == os.getpid():
        return UNKNOWN
    return f"process {holder}{_state(holder)}"


def _locks() -> list[list[str]]:
    try:
        lines = TABLE.read_text().splitlines()
    except OSError:
        return []
    return [fields for line in lines if len(fields := line.split()) == 8]  # waiting processes have one field more


def _found(locks: list[list[str]], path: str, kind: str, span: tuple[int, int] | None = None) -> int | None:
    """Return the process with an exclusive lock on a file, or on this part of it; None if none is visible."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for _, found_kind, _, mode, pid, found_file, first, last in locks:
        if (found_kind, mode, found_file) != (kind, "WRITE", file):
            continue
        covered = span is None or (int(first) <= span[0] and (last == "EOF" or span[1] <= int(last)))
        if covered and int(pid) > 0:
            return int(pid)
    return None


def _state(pid: int) -> str:
    """Return whether a process is stopped: then it releases nothing until it continues or ends."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
    return ", which is stopped (continue it or end it)" if state in "Tt" else ""
