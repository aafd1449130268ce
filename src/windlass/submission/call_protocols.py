"""What calls are made by and stored by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from windlass.runtime.verbs import Verb
from windlass.submission.handle import JobHandle
from windlass.submission.signature import CallSpec

if TYPE_CHECKING:
    from windlass.submission.call import Call, Flow

R_co = TypeVar("R_co", covariant=True)


class Enqueuer(Protocol):
    """Stores calls and returns handles on jobs: the `Submitter` of an application."""

    def submit(self, calls: "Sequence[Call[Any] | Flow[Any]]") -> Verb[list[JobHandle[Any]]]:
        """Store calls and flows, all or none, and return their handles in order."""
        ...

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """Return a handle on a job stored earlier, whose result is read by the return annotation of `spec`."""
        ...


class Bindable(Protocol[R_co]):
    """A job whose arguments are not bound yet: as a step of a flow it takes the result of the step before it."""

    def bind(self, *args: Any, **kwargs: Any) -> "Call[R_co]":
        """Return a call with these arguments."""
        ...
