"""Calls of functions that are not declared as jobs: what `app.bind` makes."""

from collections.abc import Callable, Mapping
from typing import Any

from windlass.domain.options import JobOptions
from windlass.submission.call import Call
from windlass.submission.call_protocols import Enqueuer
from windlass.submission.registry import Registry


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
