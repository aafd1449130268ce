"""Functions that an application calls by their stored names: admitted when they are given, and again when called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windlass.errors import InvalidOptionError, TargetNotAllowedError
from windlass.submission.error_text import short
from windlass.submission.registry import Registry
from windlass.submission.target import Known, TargetFunction


def hook_target(registry: Registry, function: Callable[..., Any], what: str) -> str:
    """Return the name of a function to be stored; raise if it has none, or may not be called.

    It may if it could run as a job, or if the module it is written in declares a job of this application.
    """
    if not callable(function):
        raise InvalidOptionError(f"{what} is a function at the top level of a module, got {short(function)}")
    target = registry.resolver.describe(function)
    if not _admitted(registry, target):
        module = target.partition(":")[0]
        raise TargetNotAllowedError(
            f"{target} may not be called as {what}: its module declares no job of this application; move it to a "
            f"module that does, or write Windlass(..., allow=[{module!r}])"
        )
    return target


def hook_of(registry: Registry, target: str) -> Callable[..., Any]:
    """Return the function of a stored name; raise if it may not be called, or is not found here."""
    if not _admitted(registry, target):
        raise TargetNotAllowedError(f"{target} may not be called: its module declares no job of this application")
    function = registry.resolver.resolve(target)
    if registry.resolver.describe(function) != target:
        raise TargetNotAllowedError(f"{target} may not be called: it was imported from another module")
    return function


def _admitted(registry: Registry, target: str) -> bool:
    if isinstance(registry.resolve(target), Known):
        return True
    module = target.partition(":")[0]
    return any(_module(function) == module for function in registry.functions)


def _module(function: TargetFunction) -> str:
    return (function.home or function.target).partition(":")[0]
