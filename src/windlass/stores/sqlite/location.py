"""The location of a SQLite database, and whether its file is still the one that was opened.

A connection continues to write to a file that was deleted or replaced, which no other process can see any more. So
device and inode of the path are compared with those of the opened file: once per transaction, at a cost of
microseconds.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from windlass import loggers
from windlass.errors import StoreUnavailableError

logger = loggers.logger("windlass.store")

IN_MEMORY: Final = ":memory:"


class Location:
    """The path of a database, made absolute when it is first used, and the identity of the file opened there."""

    def __init__(self, path: str, *, is_default: bool = False) -> None:
        self.given = path
        self.in_memory = path == IN_MEMORY
        self._is_default = is_default
        self._path: str | None = None
        self._identity: tuple[int, int] | None = None

    @property
    def path(self) -> str:
        """The absolute path, or `:memory:`; a program that changes its folder later keeps its database."""
        if self._path is None:
            self._path = self.given if self.in_memory else os.path.abspath(self.given)
            if self._is_default:
                logger.warning(
                    "no store was chosen: jobs are kept in %s. Choose one with Windlass(url) or the variable "
                    "WINDLASS_URL; Windlass('sqlite:///windlass.db') chooses this file, without this warning",
                    self._path,
                )
        return self._path

    def opened(self) -> None:
        """Record which file a new connection has opened, or raise if it is a different one than before."""
        if self._identity is None and not self.in_memory:
            with suppress(OSError):
                self._identity = _identity(self.path)
        self.check()

    def check(self) -> None:
        """Raise if the file that was opened is no longer the one at its path."""
        if self._identity is None:
            return
        try:
            found = _identity(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise self._lost("was deleted") from None
        except OSError:
            return  # without search permission on the folder the file cannot be checked
        if found != self._identity:
            raise self._lost("was replaced by another file")

    def require(self) -> None:
        """Raise if there is no file."""
        if not (self.in_memory or os.path.exists(self.path)):
            raise StoreUnavailableError(
                f"there is no SQLite database at {self.path}; check the path in the URL and the current folder. "
                "A worker, `windlass migrate` or the first enqueue makes the file",
                lasting=True,
            )

    def forget(self) -> None:
        """Forget the file: every connection was closed, and the next one may open another file."""
        self._identity = None

    def _lost(self, what: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"SQLite database {self.path}: the file {what} while this program used it, so nothing more is read from "
            "it or written to it. Stop the programs that use it, put the right file in its place, start them again",
            lasting=True,
        )


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
