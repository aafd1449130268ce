"""The scene of watching and steering: progress, a callback, and a job that is canceled while it runs."""

from __future__ import annotations

from uuid import UUID

from windlass import Job, JobStatus
from windlass.cli.demo.presenter import LONGEST_WAIT, Presenter, until
from windlass.cli.demo.shop import PAGES, Shop
from windlass.cli.demo.summary import SceneJobs
from windlass.domain.clock import monotonic

WIDTH = 40


def steering(presenter: Presenter, shop: Shop) -> SceneJobs:
    """A job that reports progress, and starts another when it is done; and one that is stopped half way."""
    presenter.scene(
        5,
        "Watching and steering",
        "A print run reports its progress, and thanks the customer once it is done; a second one is canceled.",
    )
    app = shop.app
    with app.worker(concurrency=4):
        printed = shop.print_run.using(on_success=shop.thank, correlation_id="order 7").enqueue(PAGES)
        job = _watch(presenter, shop, printed.id)
        presenter.expect("the last progress is the whole", job.progress is not None and job.progress.percent == 100)
        thanks = _callback_of(shop, printed.id)
        app.handle(thanks.id).join(timeout=LONGEST_WAIT)
        presenter.line(("✓", "green"), (f"{thanks.target} ran by itself: {app.get(thanks.id).result}", ""))
        presenter.expect("the callback ran", app.get(thanks.id).status is JobStatus.SUCCEEDED)
        _stop_half_way(presenter, shop)
    return SceneJobs("watching and steering", [printed.id, thanks.id])


def _watch(presenter: Presenter, shop: Shop, job_id: UUID) -> Job:
    with presenter.board() as show:

        def ended() -> bool:
            job = shop.app.get(job_id)
            share = (job.progress.percent or 0.0) / 100 if job.progress is not None else 0.0
            full = round(share * WIDTH)
            text = job.progress.message if job.progress is not None else ""
            cells = [("█" * full + "░" * (WIDTH - full), "green"), (f"{share:4.0%}", "bold"), (text or "", "dim")]
            show(cells, f"{job.status.value}: {job.target}({job.args[0]})")
            return job.status is JobStatus.SUCCEEDED

        until(ended)
    return shop.app.get(job_id)


def _callback_of(shop: Shop, parent: UUID) -> Job:
    def found() -> list[Job]:
        return [job for job in shop.app.find(limit=10) if job.parent_id == parent]

    until(lambda: bool(found()))
    return found()[0]


def _stop_half_way(presenter: Presenter, shop: Shop) -> None:
    handle = shop.print_run.enqueue(PAGES * 1000)
    until(lambda: shop.app.get(handle.id).progress is not None)
    began = monotonic()
    canceled = handle.cancel()
    took = (monotonic() - began) * 1000
    status = handle.join(timeout=LONGEST_WAIT)
    presenter.line(("✗", "yellow"), (f"a print run of {PAGES * 1000:,} pages was canceled in {took:.0f} ms", ""))
    presenter.expect("a running job can be canceled", canceled and status is JobStatus.CANCELED)
