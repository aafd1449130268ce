"""The scene of watching and steering: progress, a callback, and a job that is canceled while it runs."""

from __future__ import annotations

import threading
from uuid import UUID

from windlass import Job, JobStatus
from windlass.cli.demo.presenter import Stage
from windlass.cli.demo.promises import Promises, SceneJobs
from windlass.cli.demo.shop import PAGES, Shop
from windlass.domain.clock import monotonic

WIDTH = 40
PATIENCE = 20.0


def steering(stage: Stage, promises: Promises, shop: Shop) -> SceneJobs:
    """A job that says how far it is, and sets off another when it is done; and one that is stopped half way."""
    stage.scene(
        5,
        "Watching and steering",
        "A print run reports its progress, and thanks the customer once it is done; a second one is canceled.",
    )
    app = shop.app
    with app.worker(concurrency=4):
        printed = shop.print_run.using(on_success=shop.thank, correlation_id="order 7").enqueue(PAGES)
        job = _watch(stage, shop, printed.id)
        promises.keep("the last progress is the whole", job.progress is not None and job.progress.percent == 100)
        thanks = _callback_of(shop, printed.id)
        app.handle(thanks.id).join(timeout=PATIENCE)
        stage.line(("✓", "green"), (f"{thanks.target} ran by itself: {app.get(thanks.id).result}", ""))
        promises.keep("the callback ran", app.get(thanks.id).status is JobStatus.SUCCEEDED)
        _stop_half_way(stage, promises, shop)
    return SceneJobs("watching and steering", [printed.id, thanks.id])


def _watch(stage: Stage, shop: Shop, job_id: UUID) -> Job:
    pause = threading.Event()
    with stage.board() as board:
        while True:
            job = shop.app.get(job_id)
            share = (job.progress.percent or 0.0) / 100 if job.progress is not None else 0.0
            full = round(share * WIDTH)
            said = job.progress.message if job.progress is not None else ""
            cells = [("█" * full + "░" * (WIDTH - full), "green"), (f"{share:4.0%}", "bold"), (said or "", "dim")]
            board.show(cells, f"{job.status.value}: {job.target}({job.args[0]})")
            if job.status is JobStatus.SUCCEEDED:
                return job
            pause.wait(0.05)


def _callback_of(shop: Shop, parent: UUID) -> Job:
    ends = monotonic() + PATIENCE
    while monotonic() < ends:
        for job in shop.app.find(limit=10):
            if job.parent_id == parent:
                return job
    raise LookupError(f"job {parent} set off no other job")


def _stop_half_way(stage: Stage, promises: Promises, shop: Shop) -> None:
    handle = shop.print_run.enqueue(PAGES * 1000)
    pause, ends = threading.Event(), monotonic() + PATIENCE
    while shop.app.get(handle.id).progress is None and monotonic() < ends:
        pause.wait(0.02)
    began = monotonic()
    canceled = handle.cancel()
    took = (monotonic() - began) * 1000
    status = handle.join(timeout=PATIENCE)
    stage.line(("✗", "yellow"), (f"a print run of {PAGES * 1000:,} pages was canceled in {took:.0f} ms", ""))
    promises.keep("a running job can be canceled", canceled and status is JobStatus.CANCELED)
