"""Watches the source files of this program for changes, for `windlass worker --reload`."""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

logger = logging.getLogger("windlass.reload")

INTERVAL: Final = 0.5
"""Seconds between two checks."""
MAX_FILES: Final = 5000
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages", "venv"})

Stamp = tuple[int, int]


def stamps(files: Iterable[str]) -> dict[str, Stamp]:
    """Return modification time and size of each file; missing files are left out."""
    found: dict[str, Stamp] = {}
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            found[file] = (status.st_mtime_ns, status.st_size)
    return found


def changed(before: dict[str, Stamp], now: dict[str, Stamp]) -> str | None:
    """Return a file that has changed. A missing one may be about to be replaced, and is waited for."""
    return next((file for file, stamp in now.items() if before.get(file, stamp) != stamp), None)


def imported_sources() -> set[str]:
    """Return the files of all imported modules, except the standard library's and installed ones."""
    library = sysconfig.get_path("stdlib")
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {
        file
        for file in files
        if isinstance(file, str)
        and file.endswith(".py")
        and not file.startswith(library)
        and not _SKIPPED.intersection(file.split(os.sep))
    }


def sources_below(folder: str) -> list[str]:
    """Return Python files in a folder and its subfolders, except hidden ones and virtual environments."""
    files: list[str] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        files += [os.path.join(directory, name) for name in names if name.endswith(".py")]
        if len(files) > MAX_FILES:
            break
    return files


def log_change(file: str) -> None:
    """Log the file that has changed."""
    logger.warning("%s has changed: restarting", os.path.relpath(file))


class SourceWatch(threading.Thread):
    """Checks the files of imported modules, and calls back once when one of them has changed."""

    def __init__(self, when_changed: Callable[[], object]) -> None:
        super().__init__(name="windlass-reload", daemon=True)
        self._when_changed = when_changed
        self.changed: str | None = None
        """The file that has changed."""
        self._known = stamps(imported_sources())  # not in `run`: the thread may begin after the first change

    def run(self) -> None:
        """Check until a file has changed; modules imported later are included from then on."""
        pause = threading.Event()
        while self.changed is None:
            pause.wait(INTERVAL)
            now = stamps(imported_sources())
            self.changed = changed(self._known, now)
            self._known = {**now, **self._known}
        log_change(self.changed)
        self._when_changed()
