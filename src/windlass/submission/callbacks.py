"""What `on_success` and `on_failure` store: the call that follows, checked when its job is enqueued.

Marks in its arguments stand for values that are known only with the outcome. The transaction that writes the outcome
fills them in.
"""

from collections.abc import Mapping
from enum import Enum
from inspect import isclass
from typing import Any, cast

import msgspec

from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.option_checks import Callback
from windlass.domain.options import UNSET, JobOptions, ResolvedOptions
from windlass.domain.tags import tags_of
from windlass.errors import InvalidOptionError, JobFailedError, PayloadTooLargeError, SerializationError
from windlass.submission.annotations import leaves
from windlass.submission.call import Call
from windlass.submission.codec import by_name, by_position, encode_one
from windlass.submission.error_text import short
from windlass.submission.registry import Registry
from windlass.submission.rows import RowTemplate
from windlass.submission.signature import CallSpec, Parameter
from windlass.submission.stored_options import Callbacks, MarkName, StoredCallback
from windlass.submission.tagged import untag


class Mark(Enum):
    """What an argument of a callback becomes once the job has ended."""

    OUTCOME = "outcome"
    """The `JobResult`."""
    VALUE = "value"
    """The job's return value."""
    ERROR = "error"
    """The failure as a `JobFailedError`."""
    ERROR_TEXT = "error_text"
    """The failure as its stored text."""


class _Arguments:
    """Arguments as JSON values, and which of them are marks: those are None."""

    def __init__(self) -> None:
        self.positional: list[Any] = []
        self.named: dict[str, Any] = {}
        self.marks: dict[str, MarkName] = {}

    def mark(self, place: str, mark: Mark) -> None:
        self.marks[place] = mark.value


def stored_callbacks(options: ResolvedOptions, registry: Registry, max_bytes: int) -> Callbacks:
    """Check the callbacks of a job and return their stored form. Most jobs have none."""
    found = {"on_success": options.on_success, "on_failure": options.on_failure}
    return {
        name: _stored(name, callback, registry, max_bytes) for name, callback in found.items() if callback is not None
    }


def _stored(name: str, callback: Callback, registry: Registry, max_bytes: int) -> StoredCallback:
    registry = _registry_of(name, callback, registry)
    if isinstance(callback, Call):
        known, options = registry.admit(callback.target), callback.options
        arguments = _arguments_of_call(known.spec, callback)
    else:
        known = registry.admit_function(cast("Any", callback))
        declared = getattr(callback, "options", None)  # a job, or a method that is one
        options = declared if isinstance(declared, JobOptions) else JobOptions()
        arguments = _arguments_of_function(name, known.spec)
    size = len(msgspec.json.encode((arguments.positional, arguments.named)))
    if size > max_bytes:
        raise PayloadTooLargeError(
            f"{name}: the arguments of {known.spec.name}() take {size:,} bytes as JSON, more than the limit of "
            f"{max_bytes:,}; store the data elsewhere and pass its id, or raise jobs.max_payload_bytes"
        )
    resolved = options.resolved()
    if resolved.idempotency_key is not None or resolved.business_key is not None:
        raise InvalidOptionError(
            f"{name}: {known.target} has an idempotency or business key, which callbacks cannot have: no caller "
            "would learn of a conflict; enqueue the keyed job from the callback's body"
        )
    if options.connection is not UNSET and options.connection is not None:
        raise InvalidOptionError(
            f"{name}: {known.target} has a connection, which callbacks cannot have: they are stored by the worker that "
            "ends the job; give the connection to the job they follow"
        )
    callbacks = stored_callbacks(resolved, registry, max_bytes)
    template = RowTemplate.of(resolved, max_bytes, callbacks, known.circuit)
    return _row(known.target, arguments, None if options.queue is UNSET else resolved.queue, template)


def _registry_of(name: str, callback: Callback, registry: Registry) -> Registry:
    """Return the registry of the callback's application, which must use the same database."""
    owner = getattr(getattr(callback, "submitter", None), "registry", registry)
    if not isinstance(owner, Registry) or owner is registry:
        return registry
    if registry.database is None or owner.database != registry.database:
        raise InvalidOptionError(
            f"{name}: {short(callback)} belongs to an application on another database "
            f"({owner.database or 'in memory'}), and a callback is stored in the database of its job; "
            "enqueue it from the body of a job instead"
        )
    return owner


def _row(target: str, arguments: _Arguments, queue: str | None, template: RowTemplate) -> StoredCallback:
    row = template.shared
    return StoredCallback(
        target=target,
        args=(arguments.positional, arguments.named),
        marks=arguments.marks,
        queue=queue,
        priority=row.priority,
        due_at=row.due_at,
        delay_us=row.delay_us,
        options=row.options,
        tags=tags_of(row.tags),
        params=row.params,
        correlation_id=row.correlation_id,
        lane=row.lane,
        expires_at=row.expires_at,
        expires_us=row.expires_us,
    )


# ---------------------------------------------------------------------- arguments


def _arguments_of_call(spec: CallSpec, call: Call[Any]) -> _Arguments:
    """Return the call's own arguments, encoded by the signature; `RESULT` becomes the mark its parameter needs."""
    arguments = _Arguments()

    def encoded(place: str, name: str, parameter: Parameter, value: Any) -> Any:
        if value is not RESULT:
            return encode_one(spec, name, parameter, value)
        arguments.mark(place, Mark.OUTCOME if _asks_for_outcome(parameter) else Mark.VALUE)
        return None

    for number, item in enumerate(by_position(spec, call.args)):
        arguments.positional.append(encoded(str(number), *item))
    for name, value in call.kwargs.items():
        arguments.named[name] = encoded(name, name, by_name(spec, name), value)
    return arguments


def _arguments_of_function(name: str, spec: CallSpec) -> _Arguments:
    arguments = _Arguments()
    for number, mark in enumerate(_marks_of_function(name, spec)):
        arguments.positional.append(None)
        arguments.mark(str(number), mark)
    return arguments


def _marks_of_function(name: str, spec: CallSpec) -> list[Mark]:
    """Return the marks for one `JobResult` or, for failures, also for `(ctx, error)`."""
    needed = [parameter for parameter in spec.positional if parameter.name in spec.required]
    if name == "on_failure" and len(needed) == len(spec.required) == len(("ctx", "error")):
        context, error = needed
        mark = _mark_of_error(error)
        if mark is None or not _takes_outcome(context):
            raise _misfit(name, spec)
        return [Mark.OUTCOME, mark]
    first = spec.positional[0] if spec.positional else spec.var_positional
    try:
        spec.bind_check((RESULT,), {})
    except TypeError:
        first = None
    if first is None or not _takes_outcome(first):
        raise _misfit(name, spec)
    return [Mark.OUTCOME]


def _misfit(name: str, spec: CallSpec) -> InvalidOptionError:
    pair = " or (ctx: JobResult, error: JobFailedError)" if name == "on_failure" else ""
    return InvalidOptionError(
        f"{name}: a callback takes one JobResult{pair}, and {spec.name} is declared as {spec.name}{spec.signature}; "
        "change it, or bind arguments, e.g. clean_up.bind(RESULT, 7), with RESULT for what the job returned"
    )


def _asks_for_outcome(parameter: Parameter) -> bool:
    return any(leaf is JobResult for leaf in leaves(parameter.annotation))


def _takes_outcome(parameter: Parameter) -> bool:
    return any(leaf is Any or leaf is JobResult for leaf in leaves(parameter.annotation))


def _mark_of_error(parameter: Parameter) -> Mark | None:
    """Return the mark of the exception, or of its text if the parameter is a str."""
    asked = list(leaves(parameter.annotation))
    if any(leaf is Any or (isclass(leaf) and issubclass(JobFailedError, leaf)) for leaf in asked):
        return Mark.ERROR
    return Mark.ERROR_TEXT if str in asked else None


def filled(stored: StoredCallback, values: Mapping[Mark, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with every mark replaced by its value."""
    marks = {place: values[Mark(mark)] for place, mark in stored.marks.items()}
    args, kwargs = stored.args
    return (
        [marks[str(number)] if str(number) in marks else _read(item) for number, item in enumerate(args)],
        {name: marks[name] if name in marks else _read(item) for name, item in kwargs.items()},
    )


def _read(item: Any) -> Any:
    """Restore built-in types; encoding them again gives the same JSON."""
    try:
        return untag(item)
    except SerializationError:  # a user's dict that looks like ours
        return item
