"""Durable background jobs in the database you already have."""

from windlass._version import __version__
from windlass.app import Windlass
from windlass.client.filters import Page
from windlass.client.health import Health
from windlass.context import JobCancelled, JobContext
from windlass.domain.backoff import Backoff
from windlass.domain.cluster import Node, Queue
from windlass.domain.job import Attempt, Job
from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.options import JobOptions
from windlass.domain.priority import Priority
from windlass.domain.report import LogLine, Progress
from windlass.domain.states import JobStatus
from windlass.errors import (
    ConfigurationError,
    DoNotRetry,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    JobStateError,
    JobTimeoutError,
    MigrationRequiredError,
    NonRetryable,
    NotAuthorizedError,
    PayloadTooLargeError,
    RetryAfter,
    SerializationError,
    StaleClaimError,
    StoreUnavailableError,
    TargetNotAllowedError,
    TargetNotFoundError,
    WindlassError,
    WorkerLostError,
    WouldBlockLoopError,
    do_not_retry,
)
from windlass.events.types import (
    Event,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobFailed,
    JobPaused,
    JobResumed,
    JobRetrying,
    JobStarted,
    JobTimedOut,
    NodeLost,
)
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.settings import JobsSettings, NodeSettings, PollerSettings, Settings
from windlass.spi import (
    Authorizer,
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    InstanceResolver,
    InvocationResolver,
    PollingStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.submission.call import Call, JobHandle
from windlass.submission.tagged import DroppedResult

__all__ = [
    "RESULT",
    "Attempt",
    "Authorizer",
    "Backoff",
    "Call",
    "Clock",
    "ConfigurationError",
    "Coordinator",
    "DefaultErrorSanitizer",
    "DoNotRetry",
    "DroppedResult",
    "DuplicateBusinessKeyError",
    "ErrorSanitizer",
    "Event",
    "ExecutorProvider",
    "Health",
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
    "JobPaused",
    "JobResult",
    "JobResumed",
    "JobRetrying",
    "JobStarted",
    "JobStateError",
    "JobStatus",
    "JobTimedOut",
    "JobTimeoutError",
    "JobsSettings",
    "LogLine",
    "MigrationRequiredError",
    "Node",
    "NodeLost",
    "NodeSettings",
    "NonRetryable",
    "NotAuthorizedError",
    "Page",
    "PayloadTooLargeError",
    "PollerSettings",
    "PollingStrategy",
    "Priority",
    "Progress",
    "Queue",
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
    "WorkerLostError",
    "WouldBlockLoopError",
    "__version__",
    "do_not_retry",
]
