"""What batches under test call, and how they are looked at."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from windlass import BatchHandle, BatchProgress, Windlass

SHOWN: list[BatchProgress] = []
"""What `show` was called with."""


def show(progress: BatchProgress) -> None:
    SHOWN.append(progress)


async def show_later(progress: BatchProgress) -> None:
    SHOWN.append(progress)


def refuse(progress: BatchProgress) -> None:
    SHOWN.append(progress)
    raise ValueError("cannot show it")


class Items:
    """Items that count how many were read, and raise at one of them."""

    def __init__(self, count: int, raises_at: int | None = None) -> None:
        self.count = count
        self.raises_at = raises_at
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        for number in range(self.count):
            if number == self.raises_at:
                raise OSError("the file is broken")
            self.read += 1
            yield f"item {number}"


def children(app: Windlass, batch: BatchHandle) -> list[Any]:
    """The jobs of a batch, in the order of their ids."""
    return sorted((job for job in app.find(limit=1000) if job.batch_id == batch.id), key=lambda job: job.id)


def child_states(app: Windlass, batch: BatchHandle) -> dict[str, int]:
    """How many children are in each state."""
    return dict(Counter(job.status.value for job in children(app, batch)))


def child(number: int) -> int:
    return number


def half_failed(progress: BatchProgress) -> bool:
    return progress.success_rate == 0.5


async def all_failed(progress: BatchProgress) -> bool:
    return progress.failed == progress.total


def raises(progress: BatchProgress) -> bool:
    raise ValueError(f"{progress.total} is too many")
