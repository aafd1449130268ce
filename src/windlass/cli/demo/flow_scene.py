"""The scene of jobs that depend on each other: a chain, a group and a join, drawn as a graph while they run."""

from __future__ import annotations

import inspect
from typing import Any

from windlass import Flow, FlowGraph, group
from windlass.cli.demo.presenter import Picture, Presenter, until
from windlass.cli.demo.shop import Shop
from windlass.cli.demo.summary import SceneJobs
from windlass.cli.job.graph_lines import draw
from windlass.domain.clock import SystemClock


def order(shop: Shop) -> Flow[Any]:
    """Check, wrap three articles side by side, label, dispatch."""
    kettle = shop.engrave.bind("kettle").then(shop.wrap)
    items = group(shop.wrap.bind("lamp"), shop.wrap.bind("rug"), kettle)
    wrapped: Flow[Any] = shop.check.bind(7).then(items)
    return wrapped.then(shop.label).then(shop.dispatch)


def flow(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Run a flow to its end; each step takes the result of the one before it."""
    presenter.scene(
        6,
        "A flow",
        "Seven jobs, stored at once: three articles side by side, a join that waits for all of them. Each step takes "
        "the result of the one before it.",
    )
    presenter.code(inspect.getsource(order), "a chain, a group and a join")
    with shop.app.worker(concurrency=4):
        handle = order(shop).enqueue()
        presenter.line((f"$ windlass job graph --watch {handle.id}", "bold"))
        with presenter.picture() as picture:
            ended = until(lambda: _shown(picture, presenter.width, handle.graph()).ended)
    graph = handle.graph()
    result = shop.app.get(graph.nodes[-1].id).result
    presenter.line(("✓", "green"), (str(result), ""))
    presenter.expect("the whole flow succeeded", ended and graph.succeeded)
    presenter.expect("the join got the results in order", result == "lamp, rug, engraved kettle: on the way")
    return SceneJobs("a flow", [job.id for job in graph.nodes])


def _shown(picture: Picture, width: int, graph: FlowGraph) -> FlowGraph:
    picture(draw(graph, width, SystemClock().now()))
    return graph
