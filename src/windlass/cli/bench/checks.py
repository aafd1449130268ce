"""Whether every job of a workload is there and ran exactly once, by what workers and queues report."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass import Windlass
from windlass.cli.bench.processes import Drained

COUNTED = 10_000
"""Up to which number `Queue.waiting` counts."""


Fact = tuple[str, object, object]
"""What it is about, what is expected, and what was found."""


class Evidence(NamedTuple):
    """What is known after a run."""

    app: Windlass
    stored: int
    keys: int = 0
    """Idempotency keys among what was stored."""
    run: Drained | None = None
    """What its workers reported; None if it only enqueued."""
    all_of_them: bool = True
    """Whether everything stored was to be drained."""

    @property
    def ended(self) -> int:
        """How many jobs should have ended."""
        if self.run is None:
            return 0
        return self.stored if self.all_of_them else self.run.ended

    def reported(self) -> list[Fact]:
        """What the workers should have reported, and what they did."""
        if self.run is None:
            return []
        return [
            ("bodies entered", self.ended, self.run.bodies),
            ("jobs reported as ended", self.ended, self.run.ended),
            ("exit codes of workers", [0] * len(self.run.codes), self.run.codes),
        ]


Check = Callable[[Evidence], list[str]]
"""Returns the errors of a run."""


def check(evidence: Evidence) -> list[str]:
    """Compare what queues and workers report with what should be."""
    queues, ended = evidence.app.queues(), evidence.ended
    return differences(
        ("jobs waiting", min(evidence.stored - ended, COUNTED), sum(queue.waiting for queue in queues)),
        ("jobs running", 0, sum(queue.running for queue in queues)),
        ("jobs succeeded", ended, sum(queue.last_hour.succeeded for queue in queues)),
        ("jobs failed", 0, sum(queue.last_hour.failed for queue in queues)),
        ("attempts retried", 0, sum(queue.last_hour.retried for queue in queues)),
        *evidence.reported(),
    )


def differences(*facts: Fact) -> list[str]:
    """Return the facts that are not as expected, as text."""
    return [f"{what}: expected {expected}, found {got}" for what, expected, got in facts if expected != got]
