"""What `@app.job` returns: still the function when called, and a job when enqueued."""

import copy
import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload
from uuid import UUID

from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.domain.other_queues import OF_A_JOB, not_here
from windlass.errors import SerializationError
from windlass.submission.call import Call, Enqueuer
from windlass.submission.handle import JobHandle
from windlass.submission.registry import Registry
from windlass.submission.target import TargetFunction, member_name

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class Enqueueable(TargetFunction, Generic[P, R]):
    """The verbs of a job; `P` are its parameters and `R` is its result."""

    def __init__(
        self,
        function: Any,
        *,
        registry: Registry,
        submitter: Enqueuer,
        options: JobOptions,
        name: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> None:
        super().__init__(function, registry.resolver.describe, stable_name=name, aliases=aliases)
        self.options = options
        self._registry = registry
        self._submitter = submitter
        self._views: dict[type, Any] = {}

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return the call as a value; nothing is stored yet.

        Raises `TypeError` if the function does not take these arguments, `SerializationError` if it has no name that
        another process could find it by.
        """
        return self._call(args, kwargs, self.options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a call of this function as a job, e.g. `charge.enqueue(42).result(timeout=10)`."""
        return self._call(args, kwargs, self.options).enqueue()

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Async twin of `enqueue`."""
        return await self._call(args, kwargs, self.options).aenqueue()

    def using(self, **options: Unpack[JobOptionsDict]) -> "BoundOptions[P, R]":
        """Return the job with other options, e.g. `charge.using(delay=60, queue="billing").enqueue(42)`."""
        return BoundOptions(self, self.options.merged(JobOptions.make(**options)))

    def handle(self, job_id: UUID | str) -> JobHandle[R]:
        """Return a handle on a job of this function that was enqueued earlier."""
        return self._submitter.handle(job_id, self._registry.admit(self.target).spec)

    @property
    def submitter(self) -> Enqueuer:
        """What stores its calls: the submitter of the application it was declared on."""
        return self._submitter

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: JobOptions) -> Call[R]:
        known = self._registry.admit(self.target)
        known.spec.bind_check(args, kwargs)
        return Call(known.target, args, kwargs, options, known.spec, self._submitter, known.circuit)

    if not TYPE_CHECKING:  # else type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names our verb for that of another queue: `.delay()` is `.enqueue()`."""
            called = self.__dict__.get("__name__", "the job")
            raise AttributeError(not_here(called, name, OF_A_JOB), name=name, obj=self)

    def __repr__(self) -> str:
        return f"<job {self.__module__}:{self.__qualname__}>"

    def _accessed(self, instance: object, owner: type) -> Any:
        """Return what `Class.job` and `instance.job` are: a job of that class, and a method that still is one."""
        if self.wrapping is staticmethod:
            return self
        if self.wrapping is classmethod:
            return MethodType(self._seen_from(owner), owner)
        if instance is None:
            return self._seen_from(owner)
        # A classmethod around this passes the class as the instance (Python 3.11, 3.12).
        return MethodType(self._seen_from(owner), instance)

    def _seen_from(self, cls: type) -> Any:
        """Return this job as a member of `cls`: a subclass that inherits it has its own target and objects."""
        view = self._views.get(cls)
        if view is None:
            view = self._views[cls] = self._view(cls)
        return view

    def _view(self, cls: type) -> Any:
        found = inspect.getattr_static(cls, self.__name__, None)
        if getattr(found, "__func__", found) is not self:  # overridden, or known there by another name
            return self
        try:
            target = member_name(cls, self.__name__)
            if target in (self.target, self.home):
                return self
        except SerializationError:  # a local class: refused when it is enqueued
            return self
        view = copy.copy(self)
        view._target, view.aliases = target, ()  # a name of its own is that of the class that declares it
        return view


# In `__get__`, self is typed by what it takes as a callable: mypy then compares the first parameter with the class that
# the job stands in, and leaves static methods alone. With the class's own name there, any parameter passes for self.


class JobFunction(Enqueueable[P, R]):
    """A plain function as a job: `charge(42)` just calls it, `charge.enqueue(42)` stores a job."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly."""
        return cast("R", self.function(*args, **kwargs))

    @overload
    def __get__(self: Callable[Concatenate[S, Q], R], instance: S | None, owner: type[S]) -> "JobFunction[Q, R]": ...
    @overload
    def __get__(  # type: ignore[misc]  # not every job is a class method, and those that are have this type
        self: Callable[Concatenate[type[S], Q], R], instance: S | None, owner: type[S]
    ) -> "JobFunction[Q, R]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Self: ...
    def __get__(self, instance: object, owner: type) -> Any:
        """Make it usable as a method of a class."""
        return self._accessed(instance, owner)


class AsyncJobFunction(Enqueueable[P, R]):
    """A coroutine function as a job: `await charge(42)` just calls it, `charge.enqueue(42)` stores a job."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function directly."""
        return cast("Coroutine[Any, Any, R]", self.function(*args, **kwargs))

    @overload
    def __get__(
        self: Callable[Concatenate[S, Q], Coroutine[Any, Any, R]], instance: S | None, owner: type[S]
    ) -> "AsyncJobFunction[Q, R]": ...
    @overload
    def __get__(  # type: ignore[misc]  # not every job is a class method, and those that are have this type
        self: Callable[Concatenate[type[S], Q], Coroutine[Any, Any, R]], instance: S | None, owner: type[S]
    ) -> "AsyncJobFunction[Q, R]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Self: ...
    def __get__(self, instance: object, owner: type) -> Any:
        """Make it usable as a method of a class."""
        return self._accessed(instance, owner)


class BoundOptions(Generic[P, R]):
    """A job with its own options; made by `using`."""

    __slots__ = ("_job", "options")

    def __init__(self, job: Enqueueable[P, R], options: JobOptions) -> None:
        self._job = job
        self.options = options

    def using(self, **options: Unpack[JobOptionsDict]) -> "BoundOptions[P, R]":
        """Return the job with these options on top of its own."""
        return BoundOptions(self._job, self.options.merged(JobOptions.make(**options)))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return the call as a value; nothing is stored yet."""
        return self._job._call(args, kwargs, self.options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a call with these options as a job."""
        return self._job._call(args, kwargs, self.options).enqueue()

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Async twin of `enqueue`."""
        return await self._job._call(args, kwargs, self.options).aenqueue()


class JobDecorator(Protocol):
    """The type of `app.job(...)`. Coroutine functions come first, or their jobs would be typed to return coroutines."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine is a result too; the first match is meant
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


def declare(
    function: Any,
    registry: Registry,
    submitter: Enqueuer,
    options: JobOptions,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
) -> JobFunction[Any, Any] | AsyncJobFunction[Any, Any]:
    """Make a job of a function and register it; what `@app.job` does.

    Without `name`, a function that has none to store (a lambda, a local function) stays unregistered, and is refused
    when enqueued.
    """
    inner = getattr(function, "__func__", function)
    kind = AsyncJobFunction if inspect.iscoroutinefunction(inner) else JobFunction
    job: JobFunction[Any, Any] | AsyncJobFunction[Any, Any]
    job = kind(function, registry=registry, submitter=submitter, options=options, name=name, aliases=aliases)
    with suppress(SerializationError):
        registry.register(job)
    return job
