"""The code that an application runs: jobs, providers of objects, event subscribers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.domain.other_queues import OF_AN_APPLICATION, not_here
from windlass.errors import ConfigurationError
from windlass.events.bus import EventBus
from windlass.events.types import Event
from windlass.submission.bound_calls import bind
from windlass.submission.by_name import call_by_name
from windlass.submission.call import Call
from windlass.submission.current_connection import UsedConnection
from windlass.submission.handle import JobHandle
from windlass.submission.instances import Instances
from windlass.submission.job_function import AsyncJobFunction, JobDecorator, JobFunction, declare
from windlass.submission.names import check_aliases, check_target
from windlass.submission.registry import Registry
from windlass.submission.submitter import Submitter

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Event)
T = TypeVar("T")


class Declarations:
    """The declaring part of an application."""

    registry: Registry
    _bus: EventBus
    _submitter: Submitter

    @overload
    def job(  # type: ignore[overload-overlap]  # coroutine functions first, or they would be typed to return coroutines
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(
        self, *, name: str | None = None, aliases: Iterable[str] = (), **options: Unpack[JobOptionsDict]
    ) -> JobDecorator: ...
    def job(  # type: ignore[misc]  # mypy and Unpack
        self, function: Any = None, /, *, name: str | None = None, aliases: Iterable[str] = (), **options: Any
    ) -> Any:
        """Make a function or method a job, bare or with options: `@app.job` or `@app.job(max_retries=3)`.

        Its jobs are stored under `name`, by default `module:qualname`; jobs stored under one of `aliases` run it too.
        """
        checked = JobOptions.make(**options)
        stable = None if name is None else check_target(name)
        earlier = check_aliases(aliases)

        def decorate(function: Any) -> Any:
            made_with = (self.registry, self._submitter, checked)
            return declare(function, *made_with, name=stable, aliases=earlier)

        return decorate if function is None else decorate(function)

    if not TYPE_CHECKING:  # else type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names our verb for that of another queue: `app.task` is `app.job`."""
            raise AttributeError(not_here("app", name, OF_AN_APPLICATION), name=name, obj=self)

    def provide(self, what: object, factory: Callable[[], object] | None = None) -> None:
        """Provide the object that methods of its class run on, or a class and a factory that makes it when needed."""
        if not isinstance(self.registry.instances, Instances):
            raise ConfigurationError(
                "provide() belongs to the default instance resolver; this app was given another one"
            )
        if factory is None:
            self.registry.instances.provide(what)
        else:
            self.registry.instances.provide(what, factory)

    def use_connection(self, connection: object) -> UsedConnection:
        """Make every enqueue in a block part of the transaction of your connection or session.

        ```python
        with Session(engine) as session, session.begin(), app.use_connection(session):
            session.add(order)
            charge.enqueue(order.id)  # stored if, and when, the session commits
        ```
        For `with` and `async with`; it holds for the present thread or task, and for tasks begun inside. Blocks nest;
        `connection=` of a call comes first, and None, there or here, stands for a transaction of its own.
        """
        return UsedConnection(self.registry, connection)

    def on(self, kind: type[E]) -> Callable[[Callable[[E], T]], Callable[[E], T]]:
        """Call the decorated function with every event of a kind, after its commit: `@app.on(JobDeadLettered)`."""
        return self._bus.on(kind)

    @overload
    def bind(self, function: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any) -> Call[R]: ...
    @overload
    def bind(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Call[R]: ...
    def bind(self, function: Any, /, *args: Any, **kwargs: Any) -> Call[Any]:
        """Return a call of a job, or of any function that `allow` admits, as a value.

        `app.bind(shop.tax.recalculate, 7)`.
        """
        if isinstance(function, JobFunction | AsyncJobFunction):
            return function.bind(*args, **kwargs)
        return bind(function, args, kwargs, registry=self.registry, submitter=self._submitter, options=JobOptions())

    def enqueue_by_name(
        self,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[JobOptionsDict],
    ) -> JobHandle[Any]:
        """Store a call of the job with this name, which need not be declared in this process.

        `app.enqueue_by_name("billing.charge", [42], {"currency": "EUR"}, queue="billing")`. Without the code,
        the options of its decorator are not known here, and its arguments are checked only where it runs.
        """
        return self._call_by_name(name, args, kwargs, options).enqueue()

    async def aenqueue_by_name(
        self,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[JobOptionsDict],
    ) -> JobHandle[Any]:
        """Async twin of `enqueue_by_name`."""
        return await self._call_by_name(name, args, kwargs, options).aenqueue()

    def _call_by_name(self, name: object, args: object, kwargs: object, options: JobOptionsDict) -> Call[Any]:
        checked = JobOptions.make(**options)
        return call_by_name(name, args, kwargs, registry=self.registry, submitter=self._submitter, options=checked)
