"""Calls of jobs by their stored names, for processes that do not have their code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windlass.domain.options import JobOptions
from windlass.errors import InvalidOptionError, SerializationError
from windlass.submission.call import Call, Enqueuer
from windlass.submission.error_text import short
from windlass.submission.names import check_target
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec, call_spec
from windlass.submission.tagged import plain


def _any_call(*args: Any, **kwargs: Any) -> Any:
    """Stand for the signature of a function that need not be known here."""


ANY_CALL: Final[CallSpec] = call_spec(_any_call)
"""The call spec of an unknown signature: the function's own signature decodes what this encodes."""


def call_by_name(
    name: object, args: object, kwargs: object, *, registry: Registry, submitter: Enqueuer, options: JobOptions
) -> Call[Any]:
    """Make a call of the job with this name or alias; what `app.enqueue_by_name` does.

    A job that is declared here is checked like any other, and `options` override its own. For other jobs the arguments
    are taken as they are: the worker checks them, and whether the job may run.
    """
    target = check_target(name)
    positional, named = _checked_arguments(target, args, kwargs)
    if target in registry:
        known = registry.admit(target)
        known.spec.bind_check(positional, named)
        declared = registry.options_of(target)
        merged = options if declared is None else declared.merged(options)
        return Call(known.target, positional, named, merged, known.spec, submitter, known.circuit)
    return Call(
        target,
        tuple(_plain(target, value) for value in positional),
        {key: _plain(target, value) for key, value in named.items()},
        options,
        ANY_CALL,
        submitter,
    )


def _checked_arguments(target: str, args: object, kwargs: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise InvalidOptionError(
            f"{target}: args must be a list of positional arguments, got {short(args)}; write [{short(args)}]"
        )
    if kwargs is None:
        return tuple(args), {}
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise InvalidOptionError(
            f"{target}: kwargs must be a dict of arguments by name, got {short(kwargs)}; e.g. {{'amount': 7}}"
        )
    return tuple(args), dict(kwargs)


def _plain(target: str, value: Any) -> Any:
    """Return an object of a class as plain JSON values; the target's annotations convert it back."""
    try:
        return plain(value)
    except SerializationError:
        raise
    except Exception as error:
        raise SerializationError(
            f"{target}: argument {short(value)} cannot be stored: {type(error).__name__}: {error}; "
            "pass what JSON can carry"
        ) from error
