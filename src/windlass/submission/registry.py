"""The functions that this process knows and may run, by their stored names."""

import inspect
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, Final, NamedTuple

from windlass.domain.circuit_mark import circuit_of
from windlass.domain.clock import monotonic
from windlass.domain.options import JobOptions
from windlass.domain.targets import not_imported
from windlass.errors import SerializationError, TargetNotAllowedError, TargetNotFoundError
from windlass.spi import InstanceResolver, InvocationResolver, TargetPolicy
from windlass.submission.error_text import short
from windlass.submission.instances import Instances
from windlass.submission.modules import PrefixPolicy, check_modules, decision_of, import_all
from windlass.submission.names import Names
from windlass.submission.signature import CallSpec, call_spec
from windlass.submission.target import (
    Denied,
    ImportResolver,
    Known,
    Resolution,
    ResolvedTarget,
    TargetFunction,
    Unknown,
    find_loaded,
)

UNKNOWN_FOR: Final = 30.0
"""Seconds for which an unknown target is not looked up again: a failing import can be slow."""


class Registry:
    """Registered functions, the policy for all others, and a cache of resolved names.

    ```python
    registry = Registry(allow=["shop.tasks"])
    registry.register(charge)                   # a JobFunction
    match registry.resolve("shop:charge"):
        case Known() as known: known.ready(registry.instances)(42)
        case Unknown() | Denied() as refused: print(refused.error)
    ```
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        include: Iterable[str] = (),
        policy: TargetPolicy | None = None,
        resolver: InvocationResolver | None = None,
        instances: InstanceResolver | None = None,
        unknown_for: float = UNKNOWN_FOR,
        app: object | None = None,
        database: str | None = None,
    ) -> None:
        self._default_policy = PrefixPolicy(allow, self)
        self.policy: TargetPolicy = self._default_policy if policy is None else policy
        self.resolver: InvocationResolver = ImportResolver() if resolver is None else resolver
        self.instances: InstanceResolver = Instances() if instances is None else instances
        self.include = check_modules(include, "include")
        self.app = app
        """The application it belongs to; other processes find their own if it is a global."""
        self.database = database
        """The database of its application; None if no other application can use the same one."""
        self._unknown_for = unknown_for
        self._names = Names()
        self._known: dict[str, Known] = {}
        self._settled: dict[str, Known] = {}
        """Those of registered names, which the default policy allows as long as they are registered."""
        self._unknown: dict[str, tuple[float, Unknown]] = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of all registered functions."""
        return self._names.targets

    @property
    def functions(self) -> tuple[TargetFunction, ...]:
        """All registered functions."""
        return self._names.functions

    def register(self, function: TargetFunction) -> None:
        """Register a function under its name and aliases.

        Another function under one of them is a `ConfigurationError`.
        """
        for name in self._names.add(function):
            self._known.pop(name, None)
            self._settled.pop(name, None)
            self._unknown.pop(name, None)

    def import_included(self) -> None:
        """Import the modules of `include`, so that their jobs are registered. Loaded modules cost nothing."""
        import_all(self.include)

    def names_of(self, target: str) -> frozenset[str]:
        """Return every name under which jobs of the same function may be stored.

        Its name, aliases and `module:qualname`.
        """
        function = self._function(target)
        names = () if function is None else (function.target, *function.aliases, function.home)
        if target not in names:  # unknown, or a method as a subclass inherits it
            return frozenset((target,))
        return frozenset(name for name in names if name is not None)

    def __contains__(self, target: object) -> bool:
        """Return whether a name is registered, or resolves to a registered function in a loaded module.

        The latter covers methods inherited from a class whose methods are jobs, and names from before a move.
        """
        return self._names.get(target) is not None or (isinstance(target, str) and self._function(target) is not None)

    def _function(self, target: str) -> TargetFunction | None:
        function = self._names.get(target)
        found = find_loaded(target) if function is None else None
        return function if found is None else self._registered_in(found)

    def _registered_in(self, found: ResolvedTarget) -> TargetFunction | None:
        inner = _unwrapped(found.value)
        if isinstance(inner, TargetFunction) and self._names.get(inner.target) is inner:
            return inner
        return None

    def resolve(self, target: str) -> Resolution:
        """Resolve a stored name. The policy is called every time, but for registered names if it is the default one.

        An alias means the function that claims it, and the policy gets that function's name. Nothing is imported for a
        target that the policy does not allow. If the policy raises, or returns neither True nor False, the target is
        `Unknown` here: it does not run, and nodes whose policy works may take it. Raises `SerializationError` if the
        function exists but its annotations cannot be resolved.
        """
        settled = self._settled.get(target)
        if settled is not None and self.policy is self._default_policy:
            return settled
        allowed = decision_of(self.policy, self._names.canonical(target))
        if isinstance(allowed, Unknown):
            return allowed
        if not allowed:
            return self._not_admitted(target)
        known = self._known.get(target)
        if known is not None:
            return known
        until, unknown = self._unknown.get(target, (0.0, None))
        if unknown is not None and monotonic() < until:
            return unknown
        return self._look_up(target)

    def _not_admitted(self, target: str) -> Denied | Unknown:
        if self._names.get(target) is not None:
            return Denied(target, _how_to_admit(target))
        found = find_loaded(target)
        if found is None:
            return Unknown(target, not_imported(target))
        if isinstance(_unwrapped(found.value), TargetFunction) and self._registered_in(found) is None:
            return Unknown(
                target,
                f"{target} is a job of another application, whose workers run it; enqueue it with its own methods",
                of_another_application=True,
            )
        return Denied(target, _how_to_admit(target))

    def _look_up(self, target: str) -> Resolution:
        try:
            known = self._registered(target) or self._imported(target)
        except TargetNotFoundError as error:
            unknown = Unknown(target, str(error))
            self._unknown[target] = (monotonic() + self._unknown_for, unknown)
            return unknown
        if isinstance(known, Known):
            self._known[target] = known
            if self._names.get(target) is not None:
                self._settled[target] = known
        return known

    def _registered(self, target: str) -> Known | None:
        function = self._names.get(target)
        if function is None:
            found = find_loaded(target)
            registered = found and self._registered_in(found)
            return classify(target, *found) if found and registered else None
        for name in (function.target, function.home):
            found = None if name is None else find_loaded(name)
            if found is not None and _unwrapped(found.value) is function:
                return classify(function.target, *found)
        return classify(function.target, function, function.owner)

    def _imported(self, target: str) -> Resolution:
        value = self.resolver.resolve(target)
        found = find_loaded(target)
        try:
            home = self.resolver.describe(value)
        except SerializationError as error:
            return Denied(target, str(error))
        # An allowed module may import functions of others (`from os import system`): their module must be allowed too.
        admitted = home == target or decision_of(self.policy, home)
        if isinstance(admitted, Unknown):
            return admitted
        if not admitted:
            return Denied(target, f"{target} is {home}; {_how_to_admit(home)}")
        if found is not None and found.owner is not None and inspect.isfunction(found.value):
            return classify(target, *found)
        return classify(target, value, None, None if found is None else found.owner)

    def admit(self, target: str) -> Known:
        """Resolve a name that is about to be stored; raise if it may not, or could not, run here."""
        match self.resolve(target):
            case Known() as known:
                return known
            case Denied(error=error):
                raise TargetNotAllowedError(error)
            case Unknown() as unknown:
                refused = unknown.policy_failed or unknown.of_another_application
                raise (TargetNotAllowedError if refused else TargetNotFoundError)(unknown.error)

    def admit_function(self, function: Callable[..., Any]) -> Known:
        """Resolve the name of a function; raise unless it leads to this function and may run."""
        known = self.admit(self.resolver.describe(function))
        if not _is_same_function(known.function, function):
            raise SerializationError(
                f"{short(function)} cannot be enqueued: its name {known.target!r} leads to {short(known.function)}; "
                "give it a name of its own at the top level of a module"
            )
        return known

    def options_of(self, target: str) -> JobOptions | None:
        """Return the options that a registered function was declared with."""
        options = getattr(self._function(target), "options", None)
        return options if isinstance(options, JobOptions) else None

    def spec_of(self, target: str) -> CallSpec | None:
        """Return the call spec of a target; None where it is not known here. Never raises."""
        try:
            resolution = self.resolve(target)
        except SerializationError:
            return None
        return resolution.spec if isinstance(resolution, Known) else None

    def clear(self) -> None:
        """Clear the caches; registered functions and provided objects stay."""
        self._known.clear()
        self._settled.clear()
        self._unknown.clear()
        if isinstance(self.instances, Instances):
            self.instances.clear()


class _Placement(NamedTuple):
    function: Callable[..., Any]
    owner: type | None
    skip_first: bool


def classify(target: str, value: Any, owner: type | None, stands_in: type | None = None) -> Known:
    """Classify a value; `stands_in` is the class of one that needs no owner but has marks of that class."""
    function, instance_of, skip_first = _placement(value, owner)
    spec = call_spec(function, skip_first=skip_first)
    if skip_first and instance_of is None:
        function = MethodType(function, owner)
    return Known(target, function, spec, instance_of, circuit_of(_unwrapped(value), function, owner, stands_in))


def _placement(value: Any, owner: type | None) -> _Placement:
    """Distinguish functions, static methods, class methods and instance methods by their position in the class."""
    inner = _unwrapped(value)
    wrapping = type(value) if inner is not value else getattr(inner, "wrapping", None)
    function = inner.function if isinstance(inner, TargetFunction) else inner
    if owner is None or wrapping is staticmethod:
        return _Placement(function, None, skip_first=False)
    if wrapping is classmethod:
        return _Placement(function, None, skip_first=True)
    return _Placement(function, owner, skip_first=True)


def _unwrapped(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _is_same_function(one: Any, other: Any) -> bool:
    return _innermost(one) is _innermost(other)


def _innermost(function: Any) -> Any:
    return inspect.unwrap(getattr(function, "__func__", function))


def _how_to_admit(target: str) -> str:
    module = target.partition(":")[0]
    return (
        f"{target} may not run: it is not registered and the policy does not allow it; "
        f"decorate it with @app.job, or write Windlass(..., allow=[{module!r}])"
    )
