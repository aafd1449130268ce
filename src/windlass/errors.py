"""Every exception that Windlass raises.

```
WindlassError
├── ConfigurationError (ValueError)    a setting, URL or declaration is wrong
│   └── InvalidOptionError             one option, argument or id is wrong
├── SerializationError (TypeError)     a value cannot be stored, or no longer fits what it is read as
├── PayloadTooLargeError               the arguments of a job are over the limit
├── TargetNotAllowedError              the function is not registered and not under `allow`
├── TargetNotFoundError                the stored target does not exist in this process
├── NotAuthorizedError                 the authorizer does not allow it       .principal .action .job_id .why
├── DuplicateBusinessKeyError          a live job or schedule holds the key   .key .holder
├── KeyConflictError                   the key of a follower, or of another input, is taken   .key .holder
├── JobNotFoundError                   no job has this id                     .job_id
├── UnknownResourceError               the resource was never configured      .resource
├── UnknownQueueError                  no job was ever in the queue           .queue .suggestion
├── UnknownCircuitError                nothing has used the circuit           .service .suggestion
├── CircuitOpenError                   the service's circuit lets nothing through   .service
├── JobFailedError                     the job awaited ended FAILED           .job_id .reason .error .error_class
├── JobCanceledError                   the job awaited ended CANCELED         .job_id
├── JobStateError                      the job cannot do that in its state    .job_id .why
├── JobTimeoutError (TimeoutError)     an attempt ran longer than its timeout
├── SignalTimeoutError (TimeoutError)  the signal that a job awaits did not come in time
├── WorkerLostError                    the process that ran the job died
├── StopJob                            raised in a body that should end now
│   └── StaleClaimError                another claim has taken the job over
├── StoreUnavailableError              the database does not answer           .lasting
├── StoreStatementError                the database answers, but refuses a statement
├── MigrationRequiredError             the schema is not the one this version needs
├── ResultDroppedError                 the job succeeded, its result was not kept   .job_id .why
└── WouldBlockLoopError                a blocking call on a thread with a running event loop
```

What a job's body raises to steer its retries (`DoNotRetry`, `RetryAfter`) is in `windlass.retry_signals`, errors
about executions of pipelines are in `windlass.execution_errors`.
"""

from uuid import UUID

__all__ = [
    "CircuitOpenError",
    "ConfigurationError",
    "DuplicateBusinessKeyError",
    "InvalidOptionError",
    "JobCanceledError",
    "JobFailedError",
    "JobNotFoundError",
    "JobStateError",
    "JobTimeoutError",
    "KeyConflictError",
    "MigrationRequiredError",
    "NotAuthorizedError",
    "PayloadTooLargeError",
    "ResultDroppedError",
    "SerializationError",
    "SignalTimeoutError",
    "StaleClaimError",
    "StopJob",
    "StoreStatementError",
    "StoreUnavailableError",
    "TargetNotAllowedError",
    "TargetNotFoundError",
    "UnknownCircuitError",
    "UnknownQueueError",
    "UnknownResourceError",
    "WindlassError",
    "WorkerLostError",
    "WouldBlockLoopError",
]


class WindlassError(Exception):
    """Base of everything Windlass raises; `except WindlassError` catches it all."""


class ConfigurationError(WindlassError, ValueError):
    """A setting, URL or declaration is wrong; the message names it and says what is expected."""


class InvalidOptionError(ConfigurationError):
    """One option, argument or id is wrong, e.g. `max_retries=-1`."""


class SerializationError(WindlassError, TypeError):
    """A value cannot be stored as JSON, or what is stored no longer fits the target's signature."""


class PayloadTooLargeError(WindlassError):
    """The stored form of a job's arguments is over `jobs.max_payload_bytes`."""


class TargetNotAllowedError(WindlassError):
    """The target is neither registered with `@app.job` nor under a prefix of `allow`."""


class TargetNotFoundError(WindlassError):
    """The stored target cannot be imported or found in this process."""


# Classes with fields keep them in `args` and build the text in `__str__`: they can then be copied and pickled.
class DuplicateBusinessKeyError(WindlassError):
    """The business key is held by a live job or schedule; `key`, `holder` and `kind` say which."""

    def __init__(self, key: str, holder: UUID, kind: str = "job") -> None:
        super().__init__(key, holder, kind)
        self.key, self.holder, self.kind = key, holder, kind

    def __str__(self) -> str:
        if self.kind == "schedule":
            return f"business key {self.key!r} is the key of a schedule ({self.holder}); use another one"
        held = f"business key {self.key!r} is held by {self.holder}, which has not ended"
        return f"{held}; wait for it or cancel it, or enqueue with on_conflict='return_existing' or 'replace'"


class KeyConflictError(WindlassError):
    """A key was used before: of a job inside a flow, or of an execution with another input. Nothing is stored."""

    def __init__(self, key: str, holder: UUID, *, of_execution: bool = False) -> None:
        super().__init__(key, holder)
        self.key, self.holder, self._of_execution = key, holder, of_execution

    def __str__(self) -> str:
        if self._of_execution:
            return f"key {self.key!r} was used before with another input, by execution {self.holder}; use another key"
        taken = f"idempotency key {self.key!r} of a job inside a flow was used before, by job {self.holder}"
        return f"{taken}; give it to the first job of the flow, or use another one"


class NotAuthorizedError(WindlassError):
    """The authorizer does not let `principal` do `action`; nothing was changed or shown."""

    def __init__(self, principal: str, action: str, job_id: UUID | None, why: str) -> None:
        super().__init__(principal, action, job_id, why)
        self.principal = principal
        self.action = action
        self.job_id = job_id
        self.why = why

    def __str__(self) -> str:
        job = "" if self.job_id is None else f" job {self.job_id}"
        return f"{self.principal} may not {self.action}{job}: {self.why}; nothing was done; ask for the permission"


class JobNotFoundError(WindlassError):
    """No job has this id: it never existed, was purged, or belongs to another database."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"no job has the id {self.job_id}; check the id and that the app uses the database it was enqueued to"


class UnknownResourceError(WindlassError):
    """A job needs a permit of a resource that is not configured."""

    def __init__(self, resource: str) -> None:
        super().__init__(
            f"no resource {resource!r} is configured; say how many jobs may use it at a time: "
            f"app.configure_resource({resource!r}, max_concurrent=5)"
        )
        self.resource = resource


class UnknownQueueError(WindlassError):
    """The queue was never used, and no job of the application is declared with it."""

    def __init__(self, queue: str, suggestion: str | None = None) -> None:
        super().__init__(queue, suggestion)
        self.queue = queue
        self.suggestion = suggestion

    def __str__(self) -> str:
        return (
            f"no queue {self.queue!r} is known{_did_you_mean(self.suggestion)}: no job was ever in it, and no job of "
            "this application is declared with it; pass create=True to create it anyway"
        )


class UnknownCircuitError(WindlassError):
    """The circuit was never used, and no job of the application is declared with it."""

    def __init__(self, service: str, suggestion: str | None = None) -> None:
        super().__init__(service, suggestion)
        self.service = service
        self.suggestion = suggestion

    def __str__(self) -> str:
        return (
            f"no circuit {self.service!r} is known{_did_you_mean(self.suggestion)}: it was never configured, switched "
            "or learned from, and no job of this application is declared with it; open(create=True) makes it"
        )


class CircuitOpenError(WindlassError):
    """A service's circuit is open. A resilience strategy raises it to make a job wait."""

    def __init__(self, service: str) -> None:
        super().__init__(f"the circuit of {service!r} is open; its jobs wait until it may be tried again")
        self.service = service


class JobFailedError(WindlassError):
    """The job whose result was asked for ended FAILED; `error` is its sanitised message."""

    def __init__(self, job_id: UUID, reason: str, error: str, error_class: str) -> None:
        super().__init__(job_id, reason, error, error_class)
        self.job_id = job_id
        self.reason = reason
        self.error = error
        self.error_class = error_class

    def __str__(self) -> str:
        return f"job {self.job_id} failed ({self.reason}): {self.error}"


class JobCanceledError(WindlassError):
    """The job whose result was asked for ended CANCELED."""

    def __init__(self, job_id: UUID, reason: str = "canceled") -> None:
        super().__init__(job_id, reason)
        self.job_id = job_id
        self.reason = reason

    def __str__(self) -> str:
        why = "" if self.reason == "canceled" else f" ({self.reason})"
        return f"job {self.job_id} was canceled{why}, so it has no result"


class JobStateError(WindlassError):
    """The job's state does not allow this operation; `why` says what to do instead."""

    def __init__(self, job_id: UUID, why: str) -> None:
        super().__init__(job_id, why)
        self.job_id = job_id
        self.why = why

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.why}"


class JobTimeoutError(WindlassError, TimeoutError):
    """An attempt ran longer than the job's `timeout`; it counts as a failed attempt. Also a `TimeoutError`."""


class SignalTimeoutError(WindlassError, TimeoutError):
    """The signal that a job awaits did not come in time; it counts as a failed attempt. Also a `TimeoutError`."""


class WorkerLostError(WindlassError):
    """The process that ran the job died; the job is run again until its crash budget is spent."""


class StopJob(WindlassError):  # noqa: N818 - an instruction to the body to end, not a failure
    """Raised by `ctx.check()` in a body that should end: its job was canceled or timed out, or its node drains."""


class StaleClaimError(StopJob):
    """Raised in a body whose job another claim has taken over, since its node was given up: nothing it does counts."""


class StoreUnavailableError(WindlassError):
    """The database cannot be reached or does not answer in time; the operation may be tried again.

    `lasting` is True when trying again will not help until someone acts: the file of a SQLite database is missing, was
    deleted or replaced, is not writable, is damaged or is not a database.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class StoreStatementError(WindlassError):
    """The database answers but refuses a correct statement (rights, schema): nothing was written, repair it."""


class MigrationRequiredError(WindlassError):
    """The database's schema is missing, too old or too new for this version of Windlass."""


class WouldBlockLoopError(WindlassError):
    """A blocking call was made on a thread that runs an event loop; the message names the async twin."""


class ResultDroppedError(WindlassError):
    """The job succeeded, but its result was too large or could not be stored; `why` says which."""

    def __init__(self, job_id: UUID, why: str) -> None:
        super().__init__(job_id, why)
        self.job_id = job_id
        self.why = why

    def __str__(self) -> str:
        return f"job {self.job_id} succeeded, but its result was not kept: {self.why}"


def _did_you_mean(suggestion: str | None) -> str:
    return "" if suggestion is None else f" (did you mean {suggestion!r}?)"
