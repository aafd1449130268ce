"""The witness: a file to which every process of a run appends a line for what it does.

It owes nothing to the store. One line is one write to a file opened for appending, so lines of many processes do not
mix, and a killed process leaves whole lines. Times are CLOCK_MONOTONIC, which all processes of a machine share and no
clock jump moves.

    start     job fence attempt node pid at resource      a body was entered
    end       job fence attempt node pid at how           it was left: `returned`, or the name of what it raised
    step      key job fence attempt node pid at resource  a step of a pipeline was entered, by which claim
    left      key job fence attempt node pid at how       it was left
    lease     node since until                            a heartbeat was answered; at least until then it holds
    taken     node at                                     somebody gave that node up and has its jobs back
    accepted  job key at                                  an enqueue returned
    canceled  job at                                      a cancel answered True
    fault     kind pid at                                 what the driver did
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from windlass import JobContext
from windlass.domain.clock import monotonic
from windlass.pipelines.step_context import StepContext

PLACE = "CHAOS_WITNESS"
"""The variable that names the file."""
NOTHING = "-"

_opened: dict[tuple[int, str], int] = {}


class Run(NamedTuple):
    """One entry of a body."""

    job: str
    fence: int
    attempt: int
    node: str
    pid: int
    started: float
    ended: float | None = None
    """None: its process did not live to say so."""
    how: str | None = None
    resource: str | None = None
    step: str | None = None
    """Of a step of a pipeline: its effect key, the same for every attempt of it with the same item."""


class Lease(NamedTuple):
    """A heartbeat that was answered. `since` is from before it was sent, so the lease held at least until `until`."""

    node: str
    since: float
    until: float


class Taken(NamedTuple):
    """A node was given up."""

    node: str
    at: float


class Accepted(NamedTuple):
    """An enqueue returned a handle."""

    job: str
    key: str | None
    at: float


class Canceled(NamedTuple):
    """A cancel answered True."""

    job: str
    at: float


class Fault(NamedTuple):
    """What the driver did to which process."""

    kind: str
    pid: int
    at: float


class Account(NamedTuple):
    """Everything the witness saw, in the order in which it was written down."""

    runs: list[Run]
    leases: list[Lease]
    taken: list[Taken]
    accepted: list[Accepted]
    canceled: list[Canceled]
    faults: list[Fault]
    steps: list[Run]
    """Entries of steps of pipelines: many for one claim."""


def say(*words: object) -> None:
    """Append one line."""
    os.write(_file(), ("\t".join(map(str, words)) + "\n").encode())


def _file() -> int:
    """Opened once in each process: a forked one opens its own."""
    place = (os.getpid(), os.environ[PLACE])
    if place not in _opened:
        _opened[place] = os.open(place[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    return _opened[place]


@contextmanager
def witnessed(resource: str | None = None) -> Iterator[JobContext]:
    """Around a body: that it was entered, and how it was left."""
    context = JobContext.current()
    who = (context.job_id, context.fence, context.attempt, context.node, os.getpid())
    say("start", *who, f"{monotonic():.6f}", resource or NOTHING)
    how = "returned"
    try:
        yield context
    except BaseException as error:
        how = type(error).__name__
        raise
    finally:
        say("end", *who, f"{monotonic():.6f}", how)


@contextmanager
def witnessed_step(resource: str | None = None) -> Iterator[StepContext]:
    """Around a step of a pipeline: that it was entered, and how it was left."""
    context = JobContext.current()
    assert isinstance(context, StepContext)
    claim = context._claimed
    who = (context.effect_key, claim.job_id, claim.fence, context.attempt, claim.node, os.getpid())
    say("step", *who, f"{monotonic():.6f}", resource or NOTHING)
    how = "returned"
    try:
        yield context
    except BaseException as error:
        how = type(error).__name__
        raise
    finally:
        say("left", *who, f"{monotonic():.6f}", how)


def read(path: Path) -> Account:
    """Put the lines together; a start and an end of the same claim are one run."""
    account = Account([], [], [], [], [], [], [])
    places: dict[tuple[str, ...], int] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):  # else another process is writing it at this moment
                _add(account, places, line.rstrip("\n").split("\t"))
    return account


class Tail:
    """Follows the file: gives what was written since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0

    def lines(self) -> list[list[str]]:
        """Whole lines, as words."""
        with self._path.open("rb") as file:
            file.seek(self._place)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        return [line.split("\t") for line in whole.decode().splitlines()]


def _add(account: Account, places: dict[tuple[str, ...], int], words: list[str]) -> None:
    match words:
        case ["start", job, fence, attempt, node, pid, at, resource]:
            places[job, fence] = len(account.runs)
            named = None if resource == NOTHING else resource
            account.runs.append(Run(job, int(fence), int(attempt), node, int(pid), float(at), resource=named))
        case ["end", job, fence, _, _, _, at, how]:
            place = places[job, fence]
            account.runs[place] = account.runs[place]._replace(ended=float(at), how=how)
        case ["step", step, job, fence, attempt, node, pid, at, resource]:
            places[step, job, fence, attempt] = len(account.steps)
            named = None if resource == NOTHING else resource
            entered = Run(job, int(fence), int(attempt), node, int(pid), float(at), resource=named, step=step)
            account.steps.append(entered)
        case ["left", step, job, fence, attempt, _, _, at, how]:
            place = places[step, job, fence, attempt]
            account.steps[place] = account.steps[place]._replace(ended=float(at), how=how)
        case ["lease", node, since, until]:
            account.leases.append(Lease(node, float(since), float(until)))
        case ["taken", node, at]:
            account.taken.append(Taken(node, float(at)))
        case ["accepted", job, key, at]:
            account.accepted.append(Accepted(job, None if key == NOTHING else key, float(at)))
        case ["canceled", job, at]:
            account.canceled.append(Canceled(job, float(at)))
        case ["fault", kind, pid, at]:
            account.faults.append(Fault(kind, int(pid), float(at)))
        case _:
            raise ValueError(f"the witness holds a line that nobody writes: {words!r}")
