"""Durable background jobs in the database you already have."""

from windlass._version import __version__
from windlass.app import Windlass
from windlass.client.handle import JobHandle
from windlass.context import JobCancelled, JobContext
from windlass.domain.backoff import Backoff
from windlass.domain.job import Attempt, Job
from windlass.domain.options import JobOptions
from windlass.domain.priority import Priority
from windlass.domain.states import JobStatus
from windlass.errors import (
    ConfigurationError,
    DoNotRetry,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    JobTimeoutError,
    MigrationRequiredError,
    NonRetryable,
    PayloadTooLargeError,
    RetryAfter,
    SerializationError,
    StaleClaimError,
    StoreUnavailableError,
    TargetNotAllowedError,
    TargetNotFoundError,
    WindlassError,
    WouldBlockLoopError,
    do_not_retry,
)
from windlass.events.types import (
    Event,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobFailed,
    JobRetrying,
    JobStarted,
    JobTimedOut,
    NodeLost,
)
from windlass.settings import JobsSettings, NodeSettings, PollerSettings, Settings
from windlass.spi import (
    Clock,
    Coordinator,
    ErrorSanitizer,
    InstanceResolver,
    InvocationResolver,
    PollingStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.submission.call import Call

__all__ = [
    "Attempt",
    "Backoff",
    "Call",
    "Clock",
    "ConfigurationError",
    "Coordinator",
    "DoNotRetry",
    "DuplicateBusinessKeyError",
    "ErrorSanitizer",
    "Event",
    "InstanceResolver",
    "InvalidOptionError",
    "InvocationResolver",
    "Job",
    "JobCanceled",
    "JobCanceledError",
    "JobCancelled",
    "JobCompleted",
    "JobContext",
    "JobDeadLettered",
    "JobFailed",
    "JobFailedError",
    "JobHandle",
    "JobNotFoundError",
    "JobOptions",
    "JobRetrying",
    "JobStarted",
    "JobStatus",
    "JobTimedOut",
    "JobTimeoutError",
    "JobsSettings",
    "MigrationRequiredError",
    "NodeLost",
    "NodeSettings",
    "NonRetryable",
    "PayloadTooLargeError",
    "PollerSettings",
    "PollingStrategy",
    "Priority",
    "RetryAfter",
    "RetryPolicy",
    "SerializationError",
    "Serializer",
    "Settings",
    "StaleClaimError",
    "StoreUnavailableError",
    "TargetNotAllowedError",
    "TargetNotFoundError",
    "TargetPolicy",
    "Windlass",
    "WindlassError",
    "WouldBlockLoopError",
    "__version__",
    "do_not_retry",
]
