"""Every extension point, on one page.

Each is a small Protocol with a default; an application takes a replacement by the keyword named in its docstring, e.g.
`Windlass(retry_policy=MyPolicy())`. A replacement needs no base class, only the methods.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from windlass.context import JobContext
from windlass.domain.call_shape import CallParameter as CallParameter  # noqa: PLC0414 - part of this page
from windlass.domain.call_shape import CallShape as CallShape  # noqa: PLC0414 - part of this page
from windlass.domain.deliveries import Delivery
from windlass.domain.job import Claim, Job, Payload
from windlass.domain.poll_interval import PollObservation
from windlass.domain.reject import Reject

_T = TypeVar("_T")


class RetryPolicy(Protocol):
    """Whether and when a failed job is retried (`retry_policy=`). Attempts count from 1.

    ```python
    class OnlyNetworkErrors:
        def should_retry(self, attempt: int, error: BaseException) -> bool:
            return isinstance(error, ConnectionError)

        def get_delay(self, attempt: int) -> timedelta:
            return timedelta(0)  # zero leaves the delay to the job's backoff
    ```
    """

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        """Return False to end the job as a dead letter, whatever retries it has left."""
        ...

    def get_delay(self, attempt: int) -> timedelta:
        """Return the delay after this attempt; zero leaves it to the job's own backoff."""
        ...


class ErrorSanitizer(Protocol):
    """Removes secrets from errors before they are stored, logged or published (`error_sanitizer=`).

    If it also has `sanitize_text(text: str) -> str`, that one cleans tracebacks, progress messages and log lines kept
    with jobs. `windlass.DefaultErrorSanitizer` has both, and is easily added to:

    ```python
    class Ours(DefaultErrorSanitizer):
        def sanitize_text(self, text: str) -> str:
            return CUSTOMER.sub("[CUSTOMER]", super().sanitize_text(text))
    ```
    """

    def sanitize(self, error: BaseException) -> str:
        """Return the text to store, in the form `ClassName: message`."""
        ...


class TargetPolicy(Protocol):
    """Which targets may be enqueued and run here (`target_policy=`); called at enqueue and before every run.

    It must not import the target to decide: a refused module is never loaded.
    """

    def allows(self, target: str) -> bool:
        """Return whether `target`, e.g. `"shop.tasks:charge"`, may run."""
        ...


class InvocationResolver(Protocol):
    """Turns functions into stored names and back (`invocation_resolver=`)."""

    def describe(self, function: Callable[..., Any], /) -> str:
        """Return the name to store; raise `SerializationError` if the function could not be found again by it."""
        ...

    def resolve(self, target: str, /) -> Callable[..., Any]:
        """Return the function behind a stored name; raise `TargetNotFoundError` if it is not known here."""
        ...


class InstanceResolver(Protocol):
    """Supplies the object an instance method runs on (`instance_resolver=`), e.g. from a dependency container."""

    def resolve(self, cls: type[_T], /) -> _T:
        """Return an object of `cls`; called from several threads."""
        ...


class ResilienceStrategy(Protocol):
    """Protects named services that jobs depend on (`resilience=`); the default is a circuit breaker per service."""

    def available(self, service: str) -> bool:
        """Return whether a call to `service` may be tried now."""
        ...

    def retry_delay(self, service: str) -> timedelta:
        """Return the delay after which an unavailable `service` should be checked again."""
        ...

    def execute(self, service: str, call: Callable[[], Coroutine[Any, Any, _T]]) -> Coroutine[Any, Any, _T]:
        """Run `call`, and record its outcome."""
        ...


class Invocation(NamedTuple):
    """One attempt, ready to be called: `function(*args, **kwargs)`. `target` finds the function in other processes."""

    target: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    timeout: float | None = None
    claim: Claim | None = None
    """Set only for kind `"process"`, like the following fields: a `JobContext` is built from it there."""
    payload: Payload | None = None
    """Includes the stored arguments, which the other process decodes itself."""
    node: str = ""


class EncodedResult(NamedTuple):
    """Returned by an executor that has already encoded the result, where the body ran."""

    text: str | None
    warning: str | None = None


class JobExecutor(Protocol):
    """Runs the bodies of jobs, one call each; of one whose `runs_on_loop` is True, the worker awaits them itself."""

    async def run(self, invocation: Invocation, /) -> object:
        """Run the body and return its result; cancelling this coroutine stops the body as far as possible.

        For kind `"process"` it may return an `EncodedResult`, and raises `WorkerLostError` if the body's process died.
        """
        ...

    async def close(self) -> None:
        """Release threads, processes or connections; safe to call twice."""


class ExecutorProvider(Protocol):
    """Where bodies run (`executors=`)."""

    def executor(self, kind: str) -> JobExecutor:
        """Return the executor for `"async"`, `"thread"` or `"process"`."""
        ...


class Coordinator(Protocol):
    """Notifies nodes of new work before they would poll (`coordinator=`). A lost message costs time, never a job."""

    def notify_new_work(self, queue: str, priority: int) -> None:
        """Wake nodes that serve `queue`; must not block and must not raise."""

    def listen(self, callback: Callable[[str, int], None]) -> None:
        """Call `callback(queue, priority)` for every message from now on, from any thread."""

    def close(self) -> None:
        """Stop listening; safe to call twice."""


class PollingStrategy(Protocol):
    """How long a node waits before it polls again (`polling=`); a pure function of its observations."""

    def next_delay(self, observation: PollObservation) -> float:
        """Return the seconds to wait, unless a wakeup or a known due time comes first."""
        ...


class Clock(Protocol):
    """The current time (`clock=`); tests pass one that moves only on request."""

    def now(self) -> datetime:
        """Return the current time as an aware datetime."""
        ...


class Authorizer(Protocol):
    """Which principals may do what (`authorizer=`); called by every verb, never by the engine.

    ```python
    class OwnersAndOperators:
        def may(self, principal: object, action: str, job: Job | None) -> bool:
            if principal is None or principal in OPERATORS:
                return True  # None is the program itself, outside of `app.acting_as`
            return job is not None and job.params.get("owner") == principal
    ```
    """

    def may(self, principal: object, action: str, job: Job | None) -> bool:
        """Return whether `principal` may do `action`, the name of a verb (`"cancel"`), to `job`, or at all without one.

        Called from several threads. Raising, or returning anything but True, refuses.
        """
        ...


class JobMiddleware(Protocol):
    """Code around the body of every job (`middleware=[…]`), e.g. for tracing, tenants or a database session.

    ```python
    class Timed:
        @contextmanager
        def around(self, ctx: JobContext) -> Iterator[None]:
            began = perf_counter()
            try:
                yield
            finally:
                TIMES.labels(ctx.target).observe(perf_counter() - began)
    ```
    """

    def around(self, ctx: JobContext) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
        """Return a context manager, which is entered where the body runs: on its loop, its thread or in its process.

        Around a coroutine it may be async. What it raises is the attempt's error; if it suppresses an error of the
        body, the job succeeds with the result None.
        """
        ...


class RejectSink(Protocol):
    """Where rejected items go (`app.pipeline(…, sink=…)`); the default is the store. A function is one, too."""

    durable: bool
    """Whether the store keeps every reject as well; if not, what this sink loses is lost."""

    def reject(self, reject: Reject, /) -> None:
        """Take a reject, perhaps again, from any thread; `windlass.SinkFailure` says when, and what an error does."""


class Outlet(Protocol):
    """A destination outside of the database to which a relay delivers: `publish("invoices", to={"crm": outlet})`.

    Subscribers of publications, providers of dead letters and sinks of rejects are outlets; `windlass.HttpTarget` and
    `windlass.SqsTarget` are two, and so is a function that takes a `Delivery`. Its error says what follows:

    - none: it is delivered, and never comes again;
    - `RetryAfter(30)`: it is delivered again after so long;
    - `DoNotRetry("why")`, or a class marked with `@do_not_retry`: it is refused for good;
    - any other error: it is delivered again, after 1 s, then 2 s, up to 5 minutes.

    ```python
    class Crm:
        def deliver(self, delivery: Delivery) -> None:
            answer = crm.put(delivery.idempotency_key, delivery.json())
            if answer.invalid:
                raise DoNotRetry(answer.reason)
    ```
    """

    def deliver(self, delivery: Delivery, /) -> None:
        """Pass a delivery on, perhaps again; called on several threads at a time, which it may block.

        It must know a repeated delivery by `delivery.idempotency_key`. It may have an attribute `timeout`, in seconds,
        after which a call counts as failed; 30 without.
        """
        ...


class Serializer(Protocol):
    """How arguments and results are converted to text and back (`serializer=`); the default is typed JSON."""

    def encode_arguments(self, shape: CallShape, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> str:
        """Return the text to store.

        Raises `SerializationError` for values that could not be restored, `PayloadTooLargeError` over `limit` bytes.
        """
        ...

    def decode_arguments(self, shape: CallShape, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the stored arguments; raise `SerializationError` if they no longer fit `shape`."""
        ...

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        """Return `(text, warning)`; never raises, since the body has run. An unstorable result becomes a marker."""
        ...

    def decode_result(self, text: str | None, annotation: Any) -> Any:
        """Return a stored result, converted by its annotation where that is known."""
        ...
