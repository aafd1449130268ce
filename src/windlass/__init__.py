"""Durable background jobs in the database you already have."""

from windlass._version import __version__
from windlass.app import Windlass
from windlass.client.filters import Page
from windlass.client.health import Health
from windlass.context import JobCancelled, JobContext
from windlass.domain.backoff import Backoff
from windlass.domain.circuit import CircuitProfile, CircuitSettings, CircuitState
from windlass.domain.cluster import Node, Queue, QueueHour
from windlass.domain.dead_letter import Alert, DeadLetter, DeadLetterGroup, Redrive
from windlass.domain.explanation import Explanation
from windlass.domain.job import Attempt, Job
from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.options import JobOptions
from windlass.domain.priority import Priority
from windlass.domain.protected import CircuitStatus, Resource
from windlass.domain.protection import circuit_protected
from windlass.domain.report import LogLine, Progress
from windlass.domain.states import JobStatus
from windlass.errors import (
    CircuitOpenError,
    ConfigurationError,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    JobStateError,
    JobTimeoutError,
    MigrationRequiredError,
    NotAuthorizedError,
    PayloadTooLargeError,
    SerializationError,
    StaleClaimError,
    StoreUnavailableError,
    TargetNotAllowedError,
    TargetNotFoundError,
    UnknownResourceError,
    WindlassError,
    WorkerLostError,
    WouldBlockLoopError,
)
from windlass.events.types import (
    AlertRaised,
    CircuitClosed,
    CircuitOpened,
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
from windlass.retry_signals import DoNotRetry, NonRetryable, RetryAfter, do_not_retry
from windlass.settings import DeadLettersSettings, JobsSettings, NodeSettings, PollerSettings, Settings
from windlass.spi import (
    Authorizer,
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    InstanceResolver,
    InvocationResolver,
    PollingStrategy,
    ResilienceStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.submission.call import Call, JobHandle
from windlass.submission.tagged import DroppedResult

__all__ = [
    "RESULT",
    "Alert",
    "AlertRaised",
    "Attempt",
    "Authorizer",
    "Backoff",
    "Call",
    "CircuitClosed",
    "CircuitOpenError",
    "CircuitOpened",
    "CircuitProfile",
    "CircuitSettings",
    "CircuitState",
    "CircuitStatus",
    "Clock",
    "ConfigurationError",
    "Coordinator",
    "DeadLetter",
    "DeadLetterGroup",
    "DeadLettersSettings",
    "DefaultErrorSanitizer",
    "DoNotRetry",
    "DroppedResult",
    "DuplicateBusinessKeyError",
    "ErrorSanitizer",
    "Event",
    "ExecutorProvider",
    "Explanation",
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
    "QueueHour",
    "Redrive",
    "ResilienceStrategy",
    "Resource",
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
    "UnknownResourceError",
    "Windlass",
    "WindlassError",
    "WorkerLostError",
    "WouldBlockLoopError",
    "__version__",
    "circuit_protected",
    "do_not_retry",
]
