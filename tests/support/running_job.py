"""Code that believes it runs inside a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from windlass.context import JobContext, current_context
from windlass.domain.job import Claim, Payload


def job_context(job_id: UUID | str, node: str, attempt: int) -> JobContext:
    """The context of an attempt that never was."""
    claim = Claim(str(job_id), 1, "default", "shop:charge", attempt - 1, 0, 2, 0, 0)
    return JobContext(claim, Payload("[[],{}]", None, None, None, None, None, 0), node)


@contextmanager
def inside_job(job_id: UUID | str, node: str, attempt: int) -> Iterator[None]:
    """Run a block as the body of a job."""
    token = current_context.set(job_context(job_id, node, attempt))
    try:
        yield
    finally:
        current_context.reset(token)
