"""Calls as arguments of an application's verbs: made by `bind`, listed for `enqueue_many`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from windlass.domain.options import JobOptions
from windlass.errors import InvalidOptionError
from windlass.submission.call import Call, Enqueuer, Flow, Group
from windlass.submission.registry import Registry

R_co = TypeVar("R_co", covariant=True)


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


def as_list(calls: Iterable[Call[R_co] | Flow[R_co] | Group]) -> list[Call[R_co] | Flow[R_co]]:
    """Return the argument of `enqueue_many` as a list, or raise InvalidOptionError."""
    if isinstance(calls, Call | Flow | Group):
        raise InvalidOptionError(
            "enqueue_many takes a list of calls and flows, got a single one; write [call], or call.enqueue()"
        )
    return [call.flow if isinstance(call, Group) else call for call in calls]
