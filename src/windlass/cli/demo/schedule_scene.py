"""The scene of a schedule: it fires, is paused, and is triggered by hand."""

from __future__ import annotations

import inspect

from windlass import Job, every
from windlass.cli.demo.presenter import LONGEST_WAIT, Presenter, until
from windlass.cli.demo.shop import Shop
from windlass.cli.demo.summary import SceneJobs

KEY = "stock-report"
TICKS = 3


def declare(shop: Shop) -> None:
    """Have the stock report delivered every second."""
    report = shop.deliver.using(tags=[KEY]).bind("stock report")
    shop.app.schedule(KEY, every(seconds=1), report)


def schedule(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Let a schedule fire a few times, pause it, and trigger it once more."""
    presenter.scene(
        11,
        "A schedule",
        "A report every second. Any worker may fire it, and each tick fires once; a pause holds until it is resumed.",
    )
    presenter.code(inspect.getsource(declare), "an interval; a cron expression with a time zone works the same")
    with shop.app.worker(concurrency=4):
        declare(shop)
        until(lambda: len(_runs(shop)) >= TICKS)
        paused = shop.app.schedules.pause(KEY)
        fired = _runs(shop)
        for job in fired:
            presenter.line((f"tick {job.due_at:%H:%M:%S}", "dim"), ("→ delivered", ""))
        presenter.line((f"$ windlass schedule pause {KEY}", "bold"))
        presenter.line((f"$ windlass schedule trigger {KEY}", "bold"))
        handle = shop.app.schedules.trigger(KEY)
        report = None if handle is None else handle.result(timeout=LONGEST_WAIT)
        presenter.line(("✓", "green"), (f"{report}, although it is paused", ""))
        until(lambda: all(job.finished_at is not None for job in _runs(shop)))
    (shown,) = shop.app.schedules.list()
    presenter.expect("the schedule was paused and triggered", paused and report == "stock report" and shown.paused)
    presenter.expect("each tick has fired once", len({job.due_at for job in fired}) == len(fired))
    return SceneJobs("a schedule", [job.id for job in _runs(shop)])


def _runs(shop: Shop) -> list[Job]:
    """The runs so far, in the order of their ticks."""
    return sorted(shop.app.find(tag=KEY), key=lambda job: job.id)
