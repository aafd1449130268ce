"""What type checkers make of batches. Never run: `mypy --strict` and pyright read it, and that is the test."""

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from windlass import Batch, BatchCompleted, BatchHandle, BatchProgress, BatchProgressed, JobStatus, Windlass

app = Windlass("sqlite://")


@app.job
def import_user(row: dict[str, int]) -> int:
    return row["id"]


@app.job
async def tell(text: str = "") -> None:
    print(text)


def show(progress: BatchProgress) -> None:
    print(progress.percent)


def is_good(progress: BatchProgress) -> bool:
    return progress.success_rate > 0.9


def rows() -> Iterator[dict[str, int]]:
    yield {"id": 7}


async def later() -> AsyncIterator[dict[str, int]]:
    yield {"id": 7}


batch = app.batch("users", tags=["import"], idempotency_key="k").each(import_user, rows(), chunk_size=10)
assert_type(batch, Batch)
batch = batch.on_progress(show).then_on_batch_success(tell.bind()).then_on_batch_failure(tell)
batch = batch.when_success_rate(0.95, tell.bind("good")).when_failure_count(3, tell.bind("bad"))
batch = batch.when_batch(is_good, tell.bind("a").then(tell.bind("b")))
handle = batch.enqueue()
assert_type(handle, BatchHandle)
assert_type(handle.progress(), BatchProgress)
assert_type(handle.join(timeout=3), JobStatus)
assert_type(handle.retry_failed(), int)
assert_type(app.batch_handle(handle.id), BatchHandle)

app.batch("using").each(import_user.using(max_retries=3), [{"id": 1}])
app.batch("wrong").each(import_user, ["text"])  # type: ignore[arg-type]
app.batch("wrong", colour="red")  # type: ignore[call-arg]


@app.on(BatchProgressed)
def progressed(event: BatchProgressed) -> None:
    assert_type(event.progress, BatchProgress)


@app.on(BatchCompleted)
def completed(event: BatchCompleted) -> None:
    assert_type(event.progress.complete, bool)


async def main() -> None:
    made = await app.batch("async").each(import_user, later()).aenqueue(resume=handle.id)
    assert_type(made, BatchHandle)
    assert_type(await made.aprogress(), BatchProgress)
