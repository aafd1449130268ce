"""What a plain job costs on its way through the engine: nothing of flows, signals and batches is called for it."""

import sys
from collections import Counter
from types import FrameType

from tests.engine.apps import Apps
from windlass.testing import drain

JOBS = 100
OF_FLOWS = (
    *("windlass.flow.", "windlass.engine.conditions", "windlass.domain.branches"),
    *("windlass.domain.batch", "windlass.domain.dependencies", "windlass.stores.plans.flow", "windlass.recurring."),
)
REST = 20
"""Calls a run that do not grow with the number of jobs."""


async def noop(number: int) -> None:
    """Do nothing, on the loop."""


def test_plain_jobs_call_nothing_of_flows(apps: Apps):
    """J8.7: no function of flows, branches, signals, batches or schedules is called for each plain job."""
    app = apps()
    app.enqueue_many([app.job(noop).bind(number) for number in range(JOBS)])
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_globals.get("__name__", ""), frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert drain(app).succeeded == JOBS
    finally:
        sys.setprofile(before)
    assert calls["windlass.engine.invoke", "Invoker.invoke"] == JOBS, "all of it ran on this thread"
    called = {name: number for name, number in calls.items() if name[0].startswith(OF_FLOWS) and number > REST}
    assert called == {}
    assert calls["windlass.engine.attempt", "Attempt.not_signaled"] == 0
