"""Two loaders of one batch, and items that do not belong to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.flow.batch_bodies import Items, children
from tests.flow.flow_bodies import Jobs
from windlass import BatchHandle, JobStatus, Windlass
from windlass.errors import InvalidOptionError, JobStateError
from windlass.testing import drain


@pytest.mark.parametrize("drained", [False, True], ids=["live", "ended"])
def test_second_loader_of_a_batch_finishes_without_an_error(app: Windlass, jobs: Jobs, drained: bool):
    """J8.4: all items are stored, so neither of them has failed; the batch ends once."""
    others: list[BatchHandle] = []

    def items() -> Iterator[str]:
        yield from "ab"
        others.append(app.batch("letters", idempotency_key="k").each(jobs.step, list("ab"), chunk_size=1).enqueue())
        if drained:
            drain(app)

    handle = app.batch("letters", idempotency_key="k").each(jobs.step, items(), chunk_size=1).enqueue()
    drain(app)
    assert others[0].id == handle.id
    assert [job.args[0] for job in children(app, handle)] == ["a", "b"]
    assert (handle.status(), handle.progress().total) == (JobStatus.SUCCEEDED, 2)


def test_late_loader_gets_an_error_that_another_one_stored_its_items(app: Windlass, jobs: Jobs):
    """J8.4: also if the batch has ended meanwhile; nothing is missing from it."""

    def items() -> Iterator[str]:
        yield "a"
        app.batch("letters", idempotency_key="k").each(jobs.step, list("ab"), chunk_size=1).enqueue()
        drain(app)
        yield "b"

    with pytest.raises(JobStateError, match=r"another loader, process .* has stored items up to number 2 while"):
        app.batch("letters", idempotency_key="k").each(jobs.step, items(), chunk_size=1).enqueue()
    (batch,) = app.find(target="windlass:batch").items
    assert batch.status is JobStatus.SUCCEEDED


def test_canceled_batch_is_no_success_for_its_loader(app: Windlass, jobs: Jobs):
    """J8.4: also if its last item was stored."""

    def items() -> Iterator[str]:
        yield from "ab"
        (opened,) = app.find(target="windlass:batch")
        assert app.cancel(opened.id)

    with pytest.raises(JobStateError, match="the batch is CANCELED"):
        app.batch("letters").each(jobs.step, items(), chunk_size=1).enqueue()


@pytest.mark.parametrize("key", [None, "second"])
def test_business_key_does_not_add_items_to_another_batch(app: Windlass, jobs: Jobs, key: str | None):
    """J1.5: only an idempotency key says that the items are the same; an open batch is returned as it is."""
    with pytest.raises(OSError, match="broken"):
        app.batch("file", business_key="k", idempotency_key="first").each(
            jobs.step, Items(4, raises_at=2), chunk_size=2
        ).enqueue()
    again = app.batch("letters", business_key="k", idempotency_key=key, on_conflict="return_existing")
    handle = again.each(jobs.step, list("vwxyz"), chunk_size=2).enqueue()
    assert handle.duplicate
    assert [job.args[0] for job in children(app, handle)] == ["item 0", "item 1"]
    whole = app.batch("file", business_key="k", idempotency_key="first", on_conflict="return_existing")
    assert whole.each(jobs.step, Items(4)).enqueue().id == handle.id
    assert handle.progress().total == 4


class Renames:
    """Like a job, but it changes the item."""

    def __init__(self, job: Any) -> None:
        self.job = job

    def bind(self, item: str) -> Any:
        return self.job.bind(f"item {item}")


def test_job_that_binds_other_arguments_is_refused(app: Windlass, jobs: Jobs):
    """J8.4: only the first item would be asked how; nothing is stored."""
    with pytest.raises(InvalidOptionError, match="gives it other arguments"):
        app.batch("letters").each(Renames(jobs.step), list("ab")).enqueue()
    assert not app.find(limit=1).items
