"""Durable background jobs in the database you already have."""

from windlass._version import __version__
from windlass.app import Windlass
from windlass.client.filters import Page
from windlass.client.health import Health
from windlass.context import JobContext
from windlass.domain.backoff import Backoff
from windlass.domain.batch import BatchProgress
from windlass.domain.circuit import CircuitProfile, CircuitSettings, CircuitState
from windlass.domain.circuit_mark import circuit_protected
from windlass.domain.cluster import Node, Queue, QueueHour
from windlass.domain.dead_letter import Alert, DeadLetter, DeadLetterGroup, Redrive
from windlass.domain.deliveries import Delivery
from windlass.domain.execution import Execution, ExecutionStatus, ExecutionTransition
from windlass.domain.execution_progress import ExecutionProgress
from windlass.domain.explanation import Explanation
from windlass.domain.external_wait import Completion, ExternalWait
from windlass.domain.flow_graph import FlowEdge, FlowGraph, FlowGroup, FlowNode
from windlass.domain.intervals import Every, every
from windlass.domain.job import Attempt, Job
from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.key_policy import KeyPolicy
from windlass.domain.limits import CircuitStatus, Resource
from windlass.domain.options import JobOptions
from windlass.domain.output_differences import StepDifference
from windlass.domain.pipeline_summary import HourlyCount, PipelineSummary, PipelineVersion, TriageRule
from windlass.domain.priority import Priority
from windlass.domain.progress import LogLine, Progress
from windlass.domain.publication import Handoff, HandoffCounts, HandoffStatus, PublicationBacklog, ReceivedItem
from windlass.domain.reject import Reject, RejectGroup, RejectRedrive, SinkFailure
from windlass.domain.schedule_plan import Misfire, Overlap
from windlass.domain.signal import Signal, approved, rejected
from windlass.domain.states import JobStatus
from windlass.domain.stored_schedule import Schedule
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
    KeyConflictError,
    MigrationRequiredError,
    NotAuthorizedError,
    PayloadTooLargeError,
    ResultDroppedError,
    SerializationError,
    SignalTimeoutError,
    StaleClaimError,
    StopJob,
    StoreStatementError,
    StoreUnavailableError,
    TargetNotAllowedError,
    TargetNotFoundError,
    UnknownCircuitError,
    UnknownQueueError,
    UnknownResourceError,
    WindlassError,
    WorkerLostError,
    WouldBlockLoopError,
)
from windlass.events.types import (
    AlertRaised,
    BatchCompleted,
    BatchProgressed,
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
    JobSignaled,
    JobStarted,
    JobTimedOut,
    NodeLost,
    ScheduleSkipped,
    WorkflowBranchTriggered,
)
from windlass.execution_errors import (
    AwaitTimeoutError,
    ExecutionCanceledError,
    ExecutionFailedError,
    ExecutionNotFoundError,
    ExecutionStateError,
    HandoffConflictError,
    InvalidTokenError,
    PayloadNotKeptError,
    PublicationNotFoundError,
    RejectSinkError,
    StaleVersionError,
    WaitNotFoundError,
)
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.integrations.http_target import HttpTarget
from windlass.integrations.sqs import SqsTarget
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.pipelines.pipeline import AppPipeline as Pipeline
from windlass.pipelines.reject_sinks import LogSink, MemorySink
from windlass.retry_signals import DoNotRetry, NonRetryable, RejectItem, RetryAfter, do_not_retry
from windlass.settings import (
    CircuitsSettings,
    DeadLettersSettings,
    FlowsSettings,
    JobsSettings,
    NodeSettings,
    PipelinesSettings,
    PollerSettings,
    RecurringSettings,
    Settings,
    StepDefaults,
)
from windlass.spi import (
    Authorizer,
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    InstanceResolver,
    InvocationResolver,
    JobMiddleware,
    Outlet,
    PollingStrategy,
    RejectSink,
    ResilienceStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.submission.batch import Batch
from windlass.submission.batch_handle import BatchHandle
from windlass.submission.branch_verbs import Condition
from windlass.submission.call import Call, Flow, Group, group
from windlass.submission.handle import JobHandle
from windlass.submission.tagged import DroppedResult

__all__ = [
    "RESULT",
    "Alert",
    "AlertRaised",
    "Attempt",
    "Authorizer", "AwaitTimeoutError",
    "Backoff",
    "Batch",
    "BatchCompleted",
    "BatchHandle",
    "BatchProgress",
    "BatchProgressed",
    "Call",
    "CircuitClosed",
    "CircuitOpenError",
    "CircuitOpened",
    "CircuitProfile",
    "CircuitSettings",
    "CircuitState",
    "CircuitStatus",
    "CircuitsSettings",
    "Clock", "Completion",
    "Condition",
    "ConfigurationError",
    "Coordinator",
    "DeadLetter",
    "DeadLetterGroup",
    "DeadLettersSettings",
    "DefaultErrorSanitizer",
    "Delivery",
    "DoNotRetry",
    "DroppedResult",
    "DuplicateBusinessKeyError",
    "ErrorSanitizer",
    "Event",
    "Every",
    "Execution", "ExecutionCanceledError", "ExecutionFailedError", "ExecutionHandle",
    "ExecutionNotFoundError",
    "ExecutionProgress",
    "ExecutionStateError",
    "ExecutionStatus",
    "ExecutionTransition",
    "ExecutorProvider",
    "Explanation", "ExternalWait",
    "Flow",
    "FlowEdge",
    "FlowGraph",
    "FlowGroup",
    "FlowNode",
    "FlowsSettings",
    "Group",
    "Handoff",
    "HandoffConflictError",
    "HandoffCounts",
    "HandoffStatus",
    "Health",
    "HourlyCount",
    "HttpTarget",
    "InstanceResolver",
    "InvalidOptionError", "InvalidTokenError",
    "InvocationResolver",
    "Job",
    "JobCanceled",
    "JobCanceledError",
    "JobCompleted",
    "JobContext",
    "JobDeadLettered",
    "JobFailed",
    "JobFailedError",
    "JobHandle",
    "JobMiddleware",
    "JobNotFoundError",
    "JobOptions",
    "JobPaused",
    "JobResult",
    "JobResumed",
    "JobRetrying",
    "JobSignaled",
    "JobStarted",
    "JobStateError",
    "JobStatus",
    "JobTimedOut",
    "JobTimeoutError",
    "JobsSettings",
    "KeyConflictError",
    "KeyPolicy",
    "LogLine",
    "LogSink",
    "MemorySink",
    "MigrationRequiredError",
    "Misfire",
    "Node",
    "NodeLost",
    "NodeSettings",
    "NonRetryable",
    "NotAuthorizedError",
    "Outlet",
    "Overlap",
    "Page",
    "PayloadNotKeptError",
    "PayloadTooLargeError",
    "Pipeline",
    "PipelineSummary",
    "PipelineVersion",
    "PipelinesSettings",
    "PollerSettings",
    "PollingStrategy",
    "Priority",
    "Progress",
    "PublicationBacklog",
    "PublicationNotFoundError",
    "Queue",
    "QueueHour",
    "ReceivedItem",
    "RecurringSettings",
    "Redrive",
    "Reject",
    "RejectGroup",
    "RejectItem",
    "RejectRedrive",
    "RejectSink",
    "RejectSinkError",
    "ResilienceStrategy",
    "Resource",
    "ResultDroppedError",
    "RetryAfter",
    "RetryPolicy",
    "Schedule",
    "ScheduleSkipped",
    "SerializationError",
    "Serializer",
    "Settings",
    "Signal",
    "SignalTimeoutError",
    "SinkFailure",
    "SqsTarget",
    "StaleClaimError",
    "StaleVersionError",
    "StepDefaults",
    "StepDifference",
    "StopJob",
    "StoreStatementError",
    "StoreUnavailableError",
    "TargetNotAllowedError",
    "TargetNotFoundError",
    "TargetPolicy",
    "TriageRule",
    "UnknownCircuitError",
    "UnknownQueueError",
    "UnknownResourceError", "WaitNotFoundError",
    "Windlass",
    "WindlassError",
    "WorkerLostError",
    "WorkflowBranchTriggered",
    "WouldBlockLoopError",
    "__version__",
    "approved",
    "circuit_protected",
    "do_not_retry",
    "every",
    "group",
    "rejected",
]  # fmt: skip
