"""Errors about executions of pipelines and their rejects. All of them are `WindlassError`s."""

from collections.abc import Sequence
from uuid import UUID

from windlass.errors import JobCanceledError, JobFailedError, WindlassError

__all__ = [
    "AwaitTimeoutError",
    "ExecutionCanceledError",
    "ExecutionFailedError",
    "ExecutionNotFoundError",
    "ExecutionStateError",
    "HandoffConflictError",
    "InvalidTokenError",
    "PayloadNotKeptError",
    "PublicationNotFoundError",
    "RejectSinkError",
    "StaleVersionError",
    "WaitNotFoundError",
]


class ExecutionFailedError(JobFailedError):
    """The execution whose result was asked for ended as `status`: DLQ, or FAILED without a dead letter."""

    def __init__(self, execution_id: UUID, status: str, reason: str, error: str, error_class: str) -> None:
        super().__init__(execution_id, reason, error, error_class)
        self.status = status

    def __str__(self) -> str:
        return f"execution {self.job_id} ended as {self.status} ({self.reason}): {self.error}"


class ExecutionCanceledError(JobCanceledError):
    """The execution whose result was asked for was canceled."""

    def __str__(self) -> str:
        return f"execution {self.job_id} ended as CANCELED"


class ExecutionNotFoundError(WindlassError):
    """No execution has this id, for this tenant."""

    def __init__(self, execution_id: object, tenant: str) -> None:
        super().__init__(
            f"no execution {execution_id} of tenant {tenant!r}: never submitted, purged after its retention, or of "
            "another tenant or database"
        )


class ExecutionStateError(WindlassError):
    """An execution is not in a state that allows what was asked."""


class StaleVersionError(WindlassError):
    """An execution has changed since the version that the caller expects."""

    def __init__(self, execution_id: object, expected: int, actual: int) -> None:
        self.expected, self.actual = expected, actual
        super().__init__(
            f"execution {execution_id} is at version {actual}, not {expected}: it has changed meanwhile; look at it "
            "again, and pass the version that you have seen"
        )


class PayloadNotKeptError(WindlassError):
    """Rejects cannot be re-driven because their items were not kept."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"none of the {count:,} rejects that fit has kept its item, so none can be re-driven; items are kept from "
            "now on with include_payload=True on the pipeline, or the setting pipelines.include_payload"
        )


class RejectSinkError(WindlassError):
    """The sink of a pipeline did not take a reject, and `sink_failure=FAIL_PIPELINE` makes that the step's failure."""

    def __init__(self, reject_id: object, step: str, error: BaseException) -> None:
        super().__init__(
            f"the sink did not take reject {reject_id} of step {step!r} ({type(error).__name__}: {error}), and "
            "sink_failure=FAIL_PIPELINE fails the step for that"
        )


class AwaitTimeoutError(WindlassError, TimeoutError):
    """No answer from outside came in time: the failure of a step that waited, or of an answer that comes too late."""


class InvalidTokenError(WindlassError):
    """A token does not let its bearer answer a waiting step. The token is in no part of the error."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the token is not valid: {why}; pass it exactly as ctx.token or app.executions.pending() gave it, or take "
            "a new one from app.executions.pending()"
        )


class WaitNotFoundError(WindlassError):
    """No step of this tenant waits, or has waited, for such an answer."""

    def __init__(self, what: str, tenant: str) -> None:
        super().__init__(
            f"nothing of tenant {tenant!r} waits for an answer to {what}: it has not begun to wait, was purged after "
            "its retention, or is of another tenant or database; app.executions.pending() lists what waits"
        )


class PublicationNotFoundError(WindlassError):
    """No pipeline subscribes to a publication, so an item from outside cannot be handed over."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        here = f"subscribed to are {', '.join(known)}" if known else "no pipeline of this application subscribes"
        super().__init__(
            f"no pipeline subscribes to publication {name!r}, here or in the store; {here}; declare one with "
            f"app.pipeline(..., subscribe={name!r})"
        )


class HandoffConflictError(WindlassError):
    """A hand-off key was used before with another payload; the item is rejected, and noted as such."""

    def __init__(self, name: str, key: str) -> None:
        super().__init__(
            f"publication {name!r}: key {key!r} was handed over before with another payload; the item is rejected: "
            "send it under another key, or answer 409 to a sender that should give it up"
        )
