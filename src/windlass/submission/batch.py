"""Batches as values, checked but not stored yet: `app.batch("import").each(import_user, rows)`."""

from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from windlass.domain.batch import DEFAULT_CHUNK, BatchCondition, BatchProgress
from windlass.domain.dependencies import Follows
from windlass.domain.options import UNSET, JobOptions
from windlass.errors import InvalidOptionError
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.batch_handle import BatchHandle
from windlass.submission.call import Call, Flow, FlowStep, Group
from windlass.submission.error_text import short

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

OPTIONS: Final = (
    *("queue", "priority", "tags", "params", "correlation_id"),
    *("idempotency_key", "business_key", "on_conflict"),
)
"""The options that the job of a batch can have; those of children belong to their job."""
MAX_CHUNK: Final = 10_000
MAX_CHILDREN: Final = 2**31 - 1


class ItemJob(Protocol[T_contra]):
    """A job whose only argument is an item, perhaps with options of its own."""

    def bind(self, item: T_contra, /) -> Call[Any]:
        """Return the call for an item."""
        ...


class BatchStore(Protocol):
    """Stores batches: the `BatchLoader` of an application."""

    def load(self, batch: "Batch", resume: UUID | str | None) -> Verb[BatchHandle]:
        """Store a batch and all of its children, or resume one."""
        ...


class BatchStep(NamedTuple):
    """What follows a batch."""

    step: FlowStep
    follows: Follows | None = None
    condition: BatchCondition | None = None
    """A condition of its own instead."""
    predicate: Callable[[BatchProgress], object] | None = None
    """Predicate of a `DECIDED` follower: called with the progress, before its body is entered."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch to be stored: children made from items, and what follows when all of them have ended.

    ```python
    handle = app.batch("import users").each(import_user, rows).then_on_batch_success(notify.bind()).enqueue()
    ```

    A batch is a value: each method returns another one.
    """

    name: str
    options: JobOptions
    store: BatchStore = field(repr=False, compare=False)
    job: Any = None
    items: Any = field(default=None, repr=False)
    chunk_size: int = DEFAULT_CHUNK
    progress_function: Callable[[BatchProgress], object] | None = None
    steps: tuple[BatchStep, ...] = ()

    def each(
        self,
        job: "Callable[[T], object] | ItemJob[T]",
        items: Iterable[T] | AsyncIterable[T],
        *,
        chunk_size: int = DEFAULT_CHUNK,
    ) -> "Batch":
        """Return the batch with a child for each item, which is the only argument of `job`.

        Items come from a list, an iterator, or, for `aenqueue`, an async iterator. They are read and committed
        `chunk_size` at a time, so that children run while others are still stored, in constant memory.
        """
        if self.job is not None:
            raise InvalidOptionError("each() is given once: a batch has children of one job; use a second batch")
        _check_children(job, items)
        return replace(self, job=job, items=items, chunk_size=_whole_number(chunk_size, "chunk_size", MAX_CHUNK))

    def on_progress(self, function: Callable[[BatchProgress], object]) -> "Batch":
        """Return the batch with a function that is called with its `BatchProgress`, at most once a second.

        It is called after a commit, by the process that counted, and always at the end. It is found by its name, like a
        job: a function at the top level of a module that declares a job of this application, or that `allow` names.
        """
        return replace(self, progress_function=function)

    def then_on_batch_success(self, step: FlowStep) -> "Batch":
        """Return the batch with a step that runs once all children have succeeded.

        A step may take the `BatchProgress` as `RESULT`; a job that is not bound takes it as its only argument.
        """
        return self._followed(BatchStep(step, Follows.THEN))

    def then_on_batch_failure(self, step: FlowStep) -> "Batch":
        """Return the batch with a step that runs once all children have ended and not all have succeeded."""
        return self._followed(BatchStep(step, Follows.FAILURE))

    def when_success_rate(self, rate: float, step: FlowStep) -> "Batch":
        """Return the batch with a step that runs once all have ended, if at least this share has succeeded."""
        return self._followed(BatchStep(step, condition=BatchCondition("rate", _share(rate))))

    def when_failure_count(self, count: int, step: FlowStep) -> "Batch":
        """Return the batch with a step that runs once all have ended, if at least so many have failed."""
        bound = _whole_number(count, "a failure count", MAX_CHILDREN)
        return self._followed(BatchStep(step, condition=BatchCondition("failures", bound)))

    def when_batch(self, predicate: Callable[[BatchProgress], object], step: FlowStep) -> "Batch":
        """Return the batch with a step that runs once all have ended, if a function of the `BatchProgress` says so.

        The step's own attempt calls it first, and ends CANCELED with the reason `not_chosen` if it returns False. It is
        found by its name, like a job: a function at the top level of a module that declares a job of this application.
        """
        return self._followed(BatchStep(step, Follows.DECIDED, predicate=predicate))

    def _followed(self, step: BatchStep) -> "Batch":
        return replace(self, steps=(*self.steps, step))

    def enqueue(self, *, resume: UUID | str | None = None) -> BatchHandle:
        """Store the batch and all of its children; return when the last one is stored.

        If it is interrupted, the batch stays open and its children run: the same `idempotency_key` again, or `resume`
        with the id of the batch, skips what is stored and goes on.
        """
        return drive(self.store.load(self, resume))

    async def aenqueue(self, *, resume: UUID | str | None = None) -> BatchHandle:
        """Async twin of `enqueue`."""
        return await adrive(self.store.load(self, resume))


def make_batch(name: object, options: JobOptions, store: BatchStore) -> Batch:
    """Return a batch without children; what `app.batch` does."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidOptionError(f"a batch needs a name, e.g. app.batch('import users'), got {short(name)}")
    if options.connection is not UNSET and options.connection is not None:
        raise InvalidOptionError(
            "a batch is stored in transactions of its own, chunk by chunk, and cannot join yours: leave out "
            "connection=, or enqueue a job in your transaction that loads the batch"
        )
    for option in options.__slots__:
        if option not in OPTIONS and getattr(options, option) not in (UNSET, None):
            raise InvalidOptionError(
                f"a batch has no {option}: nothing runs it; give it to the job of its children, e.g. "
                f"each(job.using({option}=…), items). Options of a batch: {', '.join(OPTIONS)}"
            )
    return Batch(name, options, store)


def _check_children(job: object, items: object) -> None:
    if isinstance(job, Call | Flow | Group) or not (callable(job) or hasattr(job, "bind")):
        raise InvalidOptionError(
            f"each() takes a job whose argument is the item, got {short(job)}; write each(import_user, rows), and put "
            "further steps into its body: children of a batch are single jobs"
        )
    if not isinstance(items, Iterable | AsyncIterable) or isinstance(items, str | bytes):
        raise InvalidOptionError(f"each() takes items to iterate over, e.g. a list, got {short(items)}")


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidOptionError(f"a success rate is a number from 0 to 1, e.g. 0.95, got {short(value)}")
    return value


def _whole_number(value: object, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidOptionError(f"{what} is a whole number from 1 to {most:,}, got {short(value)}")
    return value
