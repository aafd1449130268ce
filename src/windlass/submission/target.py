"""Stored names of functions: `module:qualname`, from a function and back to it.

A name is looked up in a module and its classes only: no property, `__getattr__` or import runs, except the one import
that `ImportResolver.resolve` makes, for targets that the policy allows.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any, Final, NamedTuple, NoReturn, cast

from windlass.domain.targets import not_imported
from windlass.errors import ConfigurationError, SerializationError, TargetNotFoundError
from windlass.runtime.global_names import importable, main_module_name
from windlass.spi import InstanceResolver
from windlass.submission.error_text import short
from windlass.submission.signature import CallSpec

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Known:
    """The target exists here and may run. `owner` is set if it needs an object of that class to run on."""

    target: str
    function: Callable[..., Any]
    spec: CallSpec
    owner: type | None = None
    circuit: str | None = None
    """The `@circuit_protected` mark of the function or its class."""

    def ready(self, instances: InstanceResolver) -> Callable[..., Any]:
        """Return the callable for the job's arguments: the function, or the method of an object from `instances`."""
        if self.owner is None:
            return self.function
        return MethodType(self.function, instances.resolve(self.owner))


@dataclass(frozen=True, slots=True)
class Unknown:
    """The target is not found here; another node may know it (rolling deploy). `error` says what was tried."""

    target: str
    error: str
    policy_failed: bool = False
    """Whether the target policy failed: the job does not run here, but is not lost either."""
    of_another_application: bool = False
    """Whether it is loaded here, but registered with another application."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The target exists here, but the policy does not allow it."""

    target: str
    error: str


Resolution = Known | Unknown | Denied


class ResolvedTarget(NamedTuple):
    """What a name resolves to: the value, as it is in its module or class, and that class."""

    value: Any
    owner: type | None


def describe(function: object) -> str:
    """Return the name to store for a function; a function of the program's main file gets the file's module name.

    ```python
    describe(shop.tasks.charge) == "shop.tasks:charge"
    ```
    Raises `SerializationError` for what has no name that could be looked up again, saying what to write instead.
    """
    if isinstance(function, TargetFunction):
        return function.target
    if isinstance(function, MethodType):
        return _describe_method(function)
    if isinstance(function, functools.partial):
        _refuse(function, "is a partial", f"bind the arguments instead: app.bind({_name(function.func)}, ...)")
    if isinstance(function, type):
        _refuse(function, "is a class", "enqueue a function, or a method: app.bind(Class.method, ...)")
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not callable(function) or not isinstance(qualname, str):
        _refuse(function, "has no name to store", "enqueue a function, or a method: app.bind(Class.method, ...)")
    if qualname.endswith("<lambda>"):
        _refuse(function, "is a lambda and has no name", "write it with def at the top level of a module")
    if "<locals>" in qualname:
        outer = qualname.partition(".<locals>")[0]
        _refuse(function, f"is local to {outer}()", "move it to the top level of a module and pass values as arguments")
    if not isinstance(module, str):
        _refuse(function, "belongs to no module", "wrap it in a function of yours and enqueue that")
    _refuse_generator(function)
    return f"{importable(module)}:{qualname}"


def _refuse_generator(function: object) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse(function, "is a generator, whose body would not run", "return a list instead of yielding")


def _describe_method(method: MethodType) -> str:
    cls: object = method.__self__
    function: object = method.__func__
    if not isinstance(cls, type):
        holder = type(cls).__name__
        _refuse(
            method,
            f"is bound to one {holder}, which is not stored",
            f"use app.bind({holder}.{_name(function)}, ...); the object is resolved where the job runs: app.provide",
        )
    return function.target if isinstance(function, TargetFunction) else member_name(cls, _name(function))


def member_name(cls: type, name: str) -> str:
    """Return the name to store for a member of a class."""
    if "<locals>" in cls.__qualname__:
        _refuse(cls, "is a local class", "move it to the top level of a module")
    return f"{importable(cls.__module__)}:{cls.__qualname__}.{name}"


def _refuse(value: object, what: str, instead: str) -> NoReturn:
    raise SerializationError(f"{short(value)} cannot be enqueued: it {what}; {instead}")


def _name(function: object) -> str:
    return str(getattr(function, "__name__", "function"))


def find_loaded(target: str) -> ResolvedTarget | None:
    """Look a stored name up in loaded modules; imports nothing and runs no code."""
    module, _, qualname = target.partition(":")
    scope: Any = sys.modules.get(module)
    if scope is None and module == main_module_name():
        scope = sys.modules.get("__main__")
    owner: type | None = None
    for position, part in enumerate(qualname.split(".")):
        if position == 0 and isinstance(scope, ModuleType):
            scope = vars(scope).get(part, _MISSING)
        elif position > 0 and isinstance(scope, type):
            owner = scope
            scope = inspect.getattr_static(scope, part, _MISSING)
        else:
            return None
        if scope is _MISSING:
            return None
    return ResolvedTarget(scope, owner)


class ImportResolver:
    """The default `InvocationResolver`: names are `module:qualname`, found by import."""

    __slots__ = ()

    def describe(self, function: Callable[..., Any], /) -> str:
        """See `describe`."""
        return describe(function)

    def resolve(self, target: str, /) -> Callable[..., Any]:
        """Import the module and return the callable; raise `TargetNotFoundError` with the import's error."""
        found = find_loaded(target)
        if found is None:
            module, colon, qualname = target.partition(":")
            if not colon:
                raise TargetNotFoundError(not_imported(target))
            try:
                importlib.import_module(module)
            except (Exception, SystemExit) as error:
                text = f"{target}: importing {module!r} failed here: {type(error).__name__}: {error}"
                raise TargetNotFoundError(text) from error
            found = find_loaded(target)
            if found is None:
                raise TargetNotFoundError(f"{target}: module {module!r} has no {qualname!r} here")
        value = found.value
        if isinstance(value, staticmethod | classmethod):
            value = value.__get__(None, found.owner)
        if not callable(value):
            raise TargetNotFoundError(f"{target}: {short(value)} cannot be called")
        return value  # type: ignore[no-any-return]  # mypy does not narrow Any to a callable


class TargetFunction:
    """A function with a stored name; the base of what `@app.job` returns.

    The decorator may be written above or below `@staticmethod` and `@classmethod`, and on methods in a class. On a
    class method that subclasses inherit, write it above `@classmethod`: below, Python 3.13 no longer reports which
    class was accessed, and the job runs on the class that defines it.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Any,
        name: Callable[[Callable[..., Any]], str] = describe,
        *,
        stable_name: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> None:
        inner = function.__func__ if isinstance(function, staticmethod | classmethod) else function
        if not callable(inner):
            raise ConfigurationError(f"expected a function to make a job of, got {short(function)}")
        self.function: Callable[..., Any] = inner
        self.wrapping: type | None = type(function) if inner is not function else None
        self.owner: type | None = None
        self.aliases = aliases
        """Names under which earlier releases stored its jobs."""
        self._describe = name
        self._stable_name = stable_name
        self._target: str | None = None
        functools.update_wrapper(cast("Any", self), inner)

    @property
    def target(self) -> str:
        """The stored name; raises `SerializationError` if the function cannot have one."""
        if self._target is None:
            if self._stable_name is None:
                self._target = self._describe(self.function)
            else:
                _refuse_generator(self.function)
                self._target = self._stable_name
        return self._target

    @property
    def home(self) -> str | None:
        """Where the function is defined, as `module:qualname`, whatever its name; None for lambdas and local ones."""
        try:
            return describe(self.function)
        except SerializationError:
            return None

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner
