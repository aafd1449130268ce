"""A call as a value: a function's stored name with arguments and options, checked but not stored yet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, Unpack
from uuid import UUID

from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.errors import InvalidOptionError
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.handle import JobHandle
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec

R_co = TypeVar("R_co", covariant=True)


class Enqueuer(Protocol):
    """Stores calls and returns handles on jobs: the `Submitter` of an application."""

    def submit(self, calls: "Sequence[Call[Any]]") -> Verb[list[JobHandle[Any]]]:
        """Store the calls, all or none, and return their handles in order."""
        ...

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """Return a handle on a job stored earlier, whose result is read by the return annotation of `spec`."""
        ...


@dataclass(frozen=True, slots=True)
class Call(Generic[R_co]):
    """A call to be stored; `R_co` is what its job returns.

    ```python
    call = charge.bind(42).using(priority=Priority.HIGH)
    handle = call.enqueue()
    ```
    """

    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: JobOptions
    spec: CallSpec = field(repr=False, compare=False)
    submitter: Enqueuer = field(repr=False, compare=False)
    circuit: str | None = None
    """The `@circuit_protected` mark of the target."""

    def using(self, **options: Unpack[JobOptionsDict]) -> "Call[R_co]":
        """Return the same call with these options replacing its own."""
        return replace(self, options=self.options.merged(JobOptions.make(**options)))

    def enqueue(self) -> JobHandle[R_co]:
        """Store the call as a job."""
        return drive(self.submitter.submit((self,)))[0]

    async def aenqueue(self) -> JobHandle[R_co]:
        """Async twin of `enqueue`."""
        return (await adrive(self.submitter.submit((self,))))[0]


def bind(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    registry: Registry,
    submitter: Enqueuer,
    options: JobOptions,
) -> Call[Any]:
    """Make a call of any function that the policy allows, as `app.bind` does; `options` override a job's own.

    Raises `SerializationError` if the function has no name to store, `TargetNotAllowedError` if it may not run, and
    `TypeError` if it does not take these arguments.
    """
    known = registry.admit_function(function)
    known.spec.bind_check(args, kwargs)
    declared = getattr(function, "options", None)  # a job, or a method that is one
    if isinstance(declared, JobOptions):
        options = declared.merged(options)
    return Call(known.target, args, kwargs, options, known.spec, submitter, known.circuit)


def as_list(calls: Iterable[Call[R_co]]) -> list[Call[R_co]]:
    """Return the argument of `enqueue_many` as a list, or raise InvalidOptionError."""
    if isinstance(calls, Call):
        raise InvalidOptionError(
            "enqueue_many takes a list of calls, got a single one; write [call], or call.enqueue()"
        )
    return list(calls)
