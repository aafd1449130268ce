"""Bodies of flows under test: what ran is noted, and what is broken fails."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass import Job, JobContext, JobResult, JobStatus, Windlass
from windlass.testing import drain
from windlass.testing.drain import EndlessDrainError

BROKEN: set[str] = set()
"""Steps that fail as long as they are here."""
FLAKY: set[str] = set()
"""Steps whose first attempt fails."""
LOADS: dict[str, Callable[[], object]] = {}
"""What steps do when they succeed, by their names."""
RAN: list[str] = []
"""Steps that ran, in order."""


@dataclass(frozen=True)
class Order:
    """A result with a type of its own."""

    id: int
    lines: list[str]


def step(name: str) -> str:
    """Run, and return the name; fail while it is broken."""
    RAN.append(name)
    if name in BROKEN or (name in FLAKY and JobContext.current().attempt == 1):
        raise ValueError(f"{name} is broken")
    if name in LOADS:
        LOADS[name]()
    return name


def says_yes(result: Any) -> bool:
    return True


def says_no(result: Any) -> bool:
    return False


def raises(result: Any) -> bool:
    raise LookupError("nothing to judge by")


def double(number: int) -> int:
    RAN.append(f"double {number}")
    return number * 2


def make_order(number: int) -> Order:
    return Order(number, ["tea", "milk"])


def take_order(order: Order) -> str:
    assert isinstance(order, Order)
    return f"order {order.id}: {', '.join(order.lines)}"


def take_id(number: int, line: str = "") -> str:
    return f"{number} {line}".strip()


def join(values: list[Any]) -> list[Any]:
    RAN.append("join")
    return values


def judge(results: list[JobResult]) -> list[str]:
    RAN.append("judge")
    words = {(True, False): "succeeded", (False, True): "failed", (False, False): "neither"}
    return [f"{words[one.succeeded, one.failed]}: {one.value or one.error}" for one in results]


def explain_one(result: JobResult) -> str:
    return f"{result.target.rpartition(':')[2]} {result.args} gave {result.value!r}"


def nothing() -> None:
    RAN.append("nothing")


def large(size: int) -> str:
    return "x" * size


class Jobs:
    """The bodies as jobs of an application."""

    def __init__(self, app: Windlass) -> None:
        self.step = app.job(step)
        self.double = app.job(double)
        self.make_order = app.job(make_order)
        self.take_order = app.job(take_order)
        self.take_id = app.job(take_id)
        self.join = app.job(join)
        self.judge = app.job(judge)
        self.explain_one = app.job(explain_one)
        self.nothing = app.job(nothing)
        self.large = app.job(large)


def all_jobs(app: Windlass) -> list[Job]:
    """Every job, in the order of their ids."""
    return sorted(app.find(limit=1000), key=lambda job: job.id)


def states(app: Windlass) -> dict[str, str]:
    """The state of every job of `step`, by its name, with the reason of a cancel."""
    return {job.args[0]: _state(job) for job in all_jobs(app) if job.target.endswith(":step")}


def _state(job: Job) -> str:
    return job.status.value if job.status is not JobStatus.CANCELED else f"{job.status.value} {job.reason}"


def id_of(app: Windlass, name: str) -> UUID:
    """The id of the job of `step` with this name."""
    return next(job.id for job in all_jobs(app) if job.target.endswith(":step") and job.args[0] == name)


def run_one(app: Windlass) -> None:
    """Run the next job, and leave those that are due then."""
    with suppress(EndlessDrainError):
        drain(app, limit=1)
