"""Middleware: the user's context managers around the body of every job, entered where the body runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from typing import Any

from windlass.context import JobContext
from windlass.errors import ConfigurationError
from windlass.spi import JobMiddleware


def check_middleware(given: object) -> tuple[JobMiddleware, ...]:
    """Return the middleware given to an application, or raise ConfigurationError."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"middleware must be a list of objects with a method around(ctx), got {given!r}; write middleware=[…]"
        )
    return tuple(map(_checked, given))


def _checked(one: object) -> JobMiddleware:
    if isinstance(one, type):
        raise ConfigurationError(f"middleware must hold objects, got the class {one.__name__}; write {one.__name__}()")
    if not callable(getattr(one, "around", None)):
        raise ConfigurationError(
            f"middleware must have a method around(ctx) that gives a context manager, got {one!r} without one"
        )
    return one  # type: ignore[return-value]  # it has the only method of the protocol


def around(
    function: Callable[..., Any], middleware: Sequence[JobMiddleware], context: JobContext, *, is_coroutine: bool
) -> Callable[..., Any]:
    """Return a function that enters all middleware, the first outermost, and then calls `function`.

    If one of them suppresses an error, the call returns None.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        value = None
        with ExitStack() as stack:
            for one in middleware:
                stack.enter_context(_blocking(one, one.around(context)))
            value = function(*args, **kwargs)
        return value  # noqa: RET504 - None, if an error was suppressed

    async def acall(*args: Any, **kwargs: Any) -> Any:
        value = None
        async with AsyncExitStack() as stack:
            for one in middleware:
                manager: Any = one.around(context)
                if isinstance(manager, AbstractAsyncContextManager):
                    await stack.enter_async_context(manager)
                else:
                    stack.enter_context(_blocking(one, manager))
            value = await function(*args, **kwargs)
        return value  # noqa: RET504 - None, if an error was suppressed

    return acall if is_coroutine else call


def _blocking(one: JobMiddleware, manager: Any) -> AbstractContextManager[Any]:
    if isinstance(manager, AbstractContextManager):
        return manager
    if isinstance(manager, AbstractAsyncContextManager):
        raise ConfigurationError(
            f"{type(one).__name__}.around() gave an async context manager for a function that is no coroutine; give "
            "one that has __enter__ and __exit__ too, or make the job a coroutine function"
        )
    raise ConfigurationError(
        f"{type(one).__name__}.around() must give a context manager, got {type(manager).__name__}; "
        "is @contextmanager missing, or a return?"
    )
