"""A worker whose application has schedules: `python -m tests.crash.programs.recurring_worker URL`.

It declares those of TEST_SCHEDULES, e.g. `a=every(seconds=1)|FIRE_ONCE;b=* * * * * *`. Its clock, and so its store's,
is wrong by the seconds in the file TEST_CLOCK, if there is one. What it is about to fire is written down before it is
committed: `pass KEY,NEXT_AT,NOW`.
"""

import logging
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.crash.programs.bodies import write_down
from windlass import Misfire, Windlass
from windlass.domain.clock import SystemClock
from windlass.domain.schedule_plan import parse_times
from windlass.stores.plans import ticks


class WrongClock:
    """The machine's clock, wrong by what a file says."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def now(self) -> datetime:
        return SystemClock().now() + timedelta(seconds=float(self._path.read_text()))


def beat() -> None:
    """Do nothing: that it is stored is what counts."""


planned = ticks._planned


def write_down_pass(schedule: Any, now: int, *rest: Any) -> Any:
    """Write down what the decision is drawn from."""
    write_down("pass", f"{schedule.key},{schedule.next_at},{now}")
    return planned(schedule, now, *rest)


clock_file = os.environ.get("TEST_CLOCK")
app = Windlass(sys.argv[1], clock=WrongClock(clock_file) if clock_file else None)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    ticks._planned = write_down_pass  # type: ignore[assignment]  # the same, with a line in a file
    for text in filter(None, os.environ.get("TEST_SCHEDULES", "").split(";")):
        key, times, *misfire = text.split("=", 1)[0], *text.split("=", 1)[1].rsplit("|", 1)
        policy = Misfire(misfire[0]) if misfire else Misfire.CATCH_UP
        app.recurring(str(parse_times(times)), key=key, misfire=policy)(app.job(name=f"beat.{key}")(beat))
    app.job(name="nothing")(beat)
    code = app.worker(concurrency=4).run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
