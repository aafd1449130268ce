"""The scene of a batch, counted by a bar, and of the step behind it that waits for a signal from outside."""

from __future__ import annotations

import inspect
from typing import Final

from windlass import RESULT, BatchHandle, JobStatus, approved
from windlass.cli.batch import bar
from windlass.cli.demo.presenter import LONGEST_WAIT, Picture, Presenter, until
from windlass.cli.demo.shop import Shop
from windlass.cli.demo.summary import SceneJobs
from windlass.cli.tables import STATUS_STYLES
from windlass.domain.states import TERMINAL

ARTICLES: Final = 240
KEY: Final = "sale:approved"


def sale(shop: Shop) -> BatchHandle:
    """Reprice all articles; open the sale when that is done and approved."""
    opening = shop.open_sale.bind(RESULT).await_signal(KEY)
    batch = shop.app.batch("spring sale").each(shop.reprice, range(ARTICLES))
    return batch.then_on_batch_success(opening).enqueue()


def batch(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Run a batch to its end, show what waits behind it, and send the signal."""
    presenter.scene(
        7,
        "A batch and a signal",
        f"{ARTICLES} articles, one job each, counted together. The step behind them waits for an approval: as a row of "
        "the database, without a thread.",
    )
    presenter.code(inspect.getsource(sale), "a batch, and a step that waits for a signal")
    app = shop.app
    with app.worker(concurrency=10):
        handle = sale(shop)
        presenter.line((f"$ windlass batch show --watch {handle.id}", "bold"))
        with presenter.picture() as picture:
            ended = until(lambda: _shown(picture, handle) in TERMINAL)
        opening = app.handle(handle.graph().nodes[-1].id)
        waits = app.explain(opening.id)
        presenter.line((f"$ windlass job explain {opening.id}", "bold"))
        presenter.line((f"{opening.status().value}: {waits.message}", "yellow"))
        presenter.line((f"$ windlass job signal {KEY} --approve --payload '\"Ann\"'", "bold"))
        released = app.signal(KEY, approved("Ann"))
        result = opening.result(timeout=LONGEST_WAIT)
        presenter.line(("✓", "green"), (str(result), ""))
    presenter.expect("the whole batch succeeded", ended and handle.status() is JobStatus.SUCCEEDED)
    presenter.expect("the step behind it waited for its signal", waits.code == "waiting_for_signal")
    presenter.expect("one signal released it, once", released == 1 and app.signal(KEY, approved("Ann")) == 0)
    children = [job.id for job in app.find(target=shop.reprice.target, limit=ARTICLES)]
    presenter.expect("each article was repriced by a job of its own", len(children) == ARTICLES)
    return SceneJobs("a batch and a signal", [*children, opening.id])


def _shown(picture: Picture, handle: BatchHandle) -> JobStatus:
    status = handle.status()  # read first: a batch that has ended has its last progress
    progress = handle.progress()
    counts = f"  {progress.completed} completed, {progress.failed} failed of {progress.total}"
    state = (f"{status.value:<9}  ", STATUS_STYLES[status])
    picture([[("spring sale  ", "bold"), state, (bar(progress), "green"), (counts, "dim")]])
    return status
