"""The connection that enqueues inside a block use: `with app.use_connection(session):`."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Self

from windlass.context import JobContext, current_context
from windlass.domain.caller_connections import check_connection
from windlass.domain.options import UNSET, JobOptions
from windlass.errors import ConfigurationError, InvalidOptionError


class UsedConnection:
    """A block in which enqueues join one transaction; for `with` and `async with`, in threads and tasks alike.

    Tasks started inside inherit it until the block has ended. Bodies of jobs do not, whatever started their worker.
    """

    def __init__(self, owner: object, connection: object) -> None:
        self._owner = owner
        self._connection = None if connection is None else check_connection(connection)
        self._outer: tuple[UsedConnection, ...] | None = None
        self._body: JobContext | None = None

    def __enter__(self) -> Self:
        if self._outer is not None:
            raise ConfigurationError(
                "this block of use_connection() is open already; call app.use_connection() for another"
            )
        self._outer = _blocks.get()
        self._body = current_context.get()
        _blocks.set((*self._outer, self))
        return self

    def __exit__(self, *_: object) -> None:
        _blocks.set(self._outer or ())
        self._outer = None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def serves(self, owner: object) -> bool:
        """Return whether it is open, belongs to this application, and to the code that runs now."""
        return self._owner is owner and self._outer is not None and self._body is current_context.get()

    @property
    def connection(self) -> Any:
        """What is enqueued on; None: on connections of the application's own."""
        return self._connection


_blocks: ContextVar[tuple[UsedConnection, ...]] = ContextVar("windlass_used_connections", default=())


def connection_for(options: JobOptions, owner: object) -> Any:
    """Return the connection a call belongs to: that of its options, else that of the innermost block; None for none."""
    if options.connection is not UNSET:
        return options.connection
    blocks = _blocks.get()
    if not blocks:
        return None
    return next((block.connection for block in reversed(blocks) if block.serves(owner)), None)


def given_connection(options: JobOptions) -> Any:
    """Return the connection in a call's options, or None."""
    return None if options.connection is UNSET else options.connection


def one_connection(found: Sequence[Any]) -> Any:
    """Return the connection that calls share, or None if they have none; some with it and some without is an error."""
    if any(connection is not found[0] for connection in found):
        raise InvalidOptionError(
            "calls submitted together must all carry the same connection, or none: they are stored in one transaction; "
            "write charge.using(connection=conn).bind(…) for each of them, or submit them apart"
        )
    return found[0] if found else None
