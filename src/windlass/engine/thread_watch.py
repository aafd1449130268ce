"""Detects the end of a body on a thread.

An interrupted one may run on for a while, and holds its permits until it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


class BodyWatch:
    """Calls `ended` on a body's thread when the body has ended. An interrupt may occur at any line, but only once."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._entry = [True]  # taken by the body when it begins, or by `never_begins`

    def around(self, function: Callable[..., Any], *, is_coroutine: bool) -> Callable[..., Any]:
        """Return the function, watched."""

        async def watched_coroutine(*args: Any, **kwargs: Any) -> Any:
            try:
                self._entry.pop()
                return await function(*args, **kwargs)
            finally:
                self._over()

        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                self._entry.pop()
                return function(*args, **kwargs)
            finally:
                self._over()

        return watched_coroutine if is_coroutine else watched

    def never_begins(self) -> bool:
        """Prevent a body from starting; return False if it has started."""
        with suppress(IndexError):
            return self._entry.pop()
        return False

    def _over(self) -> None:
        try:
            self._ended()
        except BaseException:
            self._ended()  # the interrupt occurred in this call
            raise
