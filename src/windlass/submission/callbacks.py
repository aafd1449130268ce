"""What `on_success` and `on_failure` store: the call that follows, checked when its job is enqueued.

Marks in its arguments stand for values that are known only with the outcome. The transaction that writes the outcome
fills them in (`templates`).
"""

from inspect import isclass
from typing import Any, cast

from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.option_checks import Callback
from windlass.domain.options import UNSET, JobOptions, ResolvedOptions
from windlass.domain.tags import tags_of
from windlass.errors import InvalidOptionError, JobFailedError
from windlass.submission.annotations import leaves
from windlass.submission.call import Call
from windlass.submission.error_text import short
from windlass.submission.registry import Registry
from windlass.submission.rows import RowTemplate
from windlass.submission.signature import CallSpec, Parameter
from windlass.submission.stored_options import Callbacks, StoredCallback
from windlass.submission.templates import Mark, Template, template_of


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
        arguments = template_of(known.spec, callback.args, callback.kwargs)
    else:
        known = registry.admit_function(cast("Any", callback))
        declared = getattr(callback, "options", None)  # a job, or a method that is one
        options = declared if isinstance(declared, JobOptions) else JobOptions()
        arguments = _arguments_of_function(name, known.spec)
    arguments.text(known.spec, max_bytes, f"{name}: ")
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
    if isinstance(callback, Call) and callback.wait is not None:
        raise InvalidOptionError(
            f"{name}: {known.target} awaits the signal {callback.wait.key!r}, which callbacks cannot do; put it into "
            "the flow with then(), or enqueue it from the callback's body"
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


def _row(target: str, arguments: Template, queue: str | None, template: RowTemplate) -> StoredCallback:
    row = template.shared
    return StoredCallback(
        target=target,
        args=(arguments.positional, arguments.named),
        marks=arguments.marks,
        paths=arguments.paths,
        queue=queue,
        priority=row.priority,
        due_at=row.due_at,
        delay_us=row.delay_us or 0,
        options=row.options,
        tags=tags_of(row.tags),
        params=row.params,
        correlation_id=row.correlation_id,
        lane=row.lane,
        expires_at=row.expires_at,
        expires_us=row.expires_us,
    )


# ---------------------------------------------------------------------- arguments


def _arguments_of_function(name: str, spec: CallSpec) -> Template:
    arguments = Template()
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


def _takes_outcome(parameter: Parameter) -> bool:
    return any(leaf is Any or leaf is JobResult for leaf in leaves(parameter.annotation))


def _mark_of_error(parameter: Parameter) -> Mark | None:
    """Return the mark of the exception, or of its text if the parameter is a str."""
    asked = list(leaves(parameter.annotation))
    if any(leaf is Any or (isclass(leaf) and issubclass(JobFailedError, leaf)) for leaf in asked):
        return Mark.ERROR
    return Mark.ERROR_TEXT if str in asked else None
