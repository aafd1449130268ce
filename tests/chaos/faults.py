"""The plan of a run's faults, drawn from its seed: the same seed gives the same faults in the same order."""

import random
from dataclasses import dataclass
from typing import NamedTuple

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a run is to do. The defaults are the short form."""

    store: str = "sqlite"
    seed: int = 1
    jobs: int = 1_500
    mix: str = "everything"
    workers: int = 3
    concurrency: int = 20
    kills: int = 6
    stops: int = 2
    """SIGSTOP until others have taken the worker's jobs and work on them, then SIGCONT."""
    naps: int = 2
    """SIGSTOP for less than a lease."""
    restarts: int = 1
    """Of the database server; none on SQLite, which has no server."""
    cuts: int = 1
    """Of every session, by the server; none on SQLite."""
    jumps: int = 2
    """Of the clock. With 0 the store's own clock is used, on PostgreSQL that of the server."""
    submitter_kills: int = 1
    pace: float = 0.6
    """Seconds between two faults, on average."""
    heartbeat: float = 0.5
    missed: int = 3
    scan: float = 0.2
    settle: float = 240.0
    """Seconds that the work left after the last fault may take."""
    broken: str = ""
    until_violation: bool = False
    """End as soon as something is wrong: for builds that are broken on purpose, which may never come to rest."""

    @property
    def lease(self) -> float:
        """How long a heartbeat is believed, at the base interval; load moves it between half and twice this."""
        return self.heartbeat * self.missed

    @property
    def environ(self) -> dict[str, str]:
        """The settings of every process."""
        return {
            "WINDLASS_NODE__HEARTBEAT_INTERVAL": str(self.heartbeat),
            "WINDLASS_NODE__MISSED_HEARTBEATS": str(self.missed),
            "WINDLASS_NODE__RECOVERY_INTERVAL": str(self.scan),
        }


class Planned(NamedTuple):
    """One fault: what, after how long a pause, and for how long or by how much."""

    kind: str
    after: float
    seconds: float = 0.0


def plan(options: Options) -> list[Planned]:
    """All faults of a run, in order."""
    dice = random.Random(f"faults/{options.seed}")
    on_server = 1 if options.store == "postgres" else 0
    kinds = (
        ["kill"] * options.kills
        + ["stop"] * options.stops
        + ["nap"] * options.naps
        + ["restart"] * options.restarts * on_server
        + ["cut"] * options.cuts * on_server
        + ["jump"] * options.jumps
        + ["kill submitter"] * options.submitter_kills
    )
    dice.shuffle(kinds)
    return [Planned(kind, dice.uniform(0.2, 1.8) * options.pace, _measure(kind, options, dice)) for kind in kinds]


def _measure(kind: str, options: Options, dice: random.Random) -> float:
    match kind:
        case "stop":  # on top of what it takes others to give it up
            return dice.uniform(0.3, 1.0)
        case "nap":
            return dice.uniform(0.05, options.lease / 3)
        case "jump":  # back by little: a machine whose clock goes back by an hour waits an hour for what was due
            return dice.choice([-2.0, -0.5, 0.5, 5.0, HOUR])
        case "kill":  # until its successor is started
            return dice.uniform(0, 1)
        case _:
            return 0.0
