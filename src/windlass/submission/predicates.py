"""Predicates of branches: importable functions, stored by name, that decide whether a branch is chosen.

A predicate is admitted if it could be a target, or if the module in which it is written declares a job of this
application. It is checked when its flow is stored, and again before it is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from windlass.errors import InvalidOptionError, SerializationError, TargetNotAllowedError, TargetNotFoundError
from windlass.submission.error_text import short
from windlass.submission.registry import Registry, classify
from windlass.submission.target import Denied, Known, Resolution, Unknown, find_loaded


class Predicates:
    """The predicates that an application knows."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._of_job_modules: dict[str, Known] = {}
        """Predicates that are admitted because of their module. Declared jobs do not go away."""

    def resolve(self, target: str) -> Resolution:
        """Resolve a stored name; raises `SerializationError` if its annotations cannot be resolved."""
        known = self._of_job_modules.get(target)
        if known is not None:
            return known
        resolution = self._registry.resolve(target)
        if isinstance(resolution, Known) or (isinstance(resolution, Unknown) and resolution.policy_failed):
            return resolution
        return self._in_job_module(target) or resolution

    def _in_job_module(self, target: str) -> Known | Denied | Unknown | None:
        """Resolve a name in a module that declares a job; None if that is no such module."""
        module = target.partition(":")[0]
        homes = (function.home for function in self._registry.functions)
        if module not in {home.partition(":")[0] for home in homes if home is not None}:
            return None
        found = find_loaded(target)
        if found is None:
            return Unknown(target, f"{target}: module {module!r} has no such predicate here")
        value = found.value
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        written_here = getattr(function, "__module__", None) in {module, "__main__"}
        if not written_here or isinstance(function, type) or not callable(function):
            return Denied(
                target,
                f"{target} is {short(function)}, which is no function written in {module}: importing it there does not "
                "make it a predicate; allow the module it is written in: Windlass(..., allow=[…])",
            )
        known = classify(target, *found)
        self._of_job_modules[target] = known
        return known

    def admit(self, function: Callable[..., Any], what: str = "predicate") -> str:
        """Return the name to store for a predicate; raise if it may not, or could not, be called here.

        `what` it is called in errors: other functions of flows are admitted in the same way.
        """
        target = self._registry.resolver.describe(function)
        known = self.resolve(target)
        if isinstance(known, Denied) or (isinstance(known, Unknown) and known.of_another_application):
            raise TargetNotAllowedError(
                f"the {what} {target} may not be called: the policy does not allow it, and the module in which it "
                "is written declares no job of this application; move it to a module with jobs, or write "
                f"Windlass(..., allow=[{target.partition(':')[0]!r}])"
            )
        if isinstance(known, Unknown):
            raise TargetNotFoundError(f"the {what} {target} is not found: {known.error}")
        if _innermost(known.function) is not _innermost(function):
            raise SerializationError(
                f"{short(function)} cannot be a {what}: its name {target!r} leads to {short(known.function)}; give "
                "it a name of its own at the top level of a module"
            )
        try:
            known.spec.bind_check((None,), {})
        except TypeError:
            raise InvalidOptionError(
                f"a {what} takes one argument, and {known.spec.name} is declared as "
                f"{known.spec.name}{known.spec.signature}; change it"
            ) from None
        return target


def _innermost(function: Any) -> Any:
    inner = getattr(function, "function", function)  # a job
    return inspect.unwrap(getattr(inner, "__func__", inner))
