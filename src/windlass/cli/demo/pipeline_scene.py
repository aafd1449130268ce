"""The scene of a pipeline: items, a reject, an execution that dies, its re-drive, and what it publishes."""

from __future__ import annotations

import inspect
from typing import Final

from windlass import ExecutionHandle, ExecutionStatus, ExecutionTransition, Pipeline
from windlass.cli.demo.order_pipeline import BANK, CALLS, CATALOGUE, ShopOrder, declare
from windlass.cli.demo.presenter import LONGEST_WAIT, Cell, Presenter
from windlass.cli.demo.shop import Shop
from windlass.cli.demo.summary import SceneJobs

ARTICLES: Final = [*CATALOGUE, "unicorn"]
KINDS: Final = {
    "submitted": "stored",
    "staged": "all items passed",
    "step": "step finished",
    "retry": "retry planned",
    "redriven": "re-driven",
    "ended": "ended",
}


def pipeline(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Run an order through a pipeline; another one dies at its last step, and goes on there."""
    presenter.scene(
        9,
        "A pipeline",
        f"An order of {len(ARTICLES)} articles becomes as many items, priced side by side; one is rejected, and the "
        "order goes on without it. Every step is stored before the next one is entered.",
    )
    presenter.code(inspect.getsource(declare), "typed steps")
    orders = declare(shop.app)
    BANK.set()
    with shop.app.worker(concurrency=4):
        first = orders.submit(ShopOrder(1, ARTICLES), key="order 1")
        result = first.result(timeout=LONGEST_WAIT)
        presenter.line((f"$ windlass execution show {first.id}", "bold"))
        _show_log(presenter, shop, orders, first)
        rejects = list(shop.app.rejects.find(execution_id=first.id))
        for reject in rejects:
            presenter.line(
                ("rejected", "yellow"), (f"item {reject.item} by {reject.step_name}: {reject.error_message}", "")
            )
        presenter.line(("✓", "green"), (str(result), ""))
        presenter.expect("the order went on without the rejected item", result == "5 lines, 250 € paid")
        presenter.expect("one item was rejected", [reject.item for reject in rejects] == ["5"])
        presenter.expect(
            "the same key again is a duplicate", orders.submit(ShopOrder(1, ARTICLES), key="order 1").duplicate
        )
        _die_and_redrive(presenter, shop, orders)
        _show_publication(presenter, shop)
    return SceneJobs("a pipeline", [first.id])


def _die_and_redrive(presenter: Presenter, shop: Shop, orders: Pipeline) -> None:
    app = shop.app
    BANK.clear()
    CALLS.clear()
    second = orders.submit(ShopOrder(2, ["kettle", "rug"]))
    ended = second.join(timeout=LONGEST_WAIT)
    (letter,) = app.dead_letters.find()
    presenter.line(
        (f"order 2: {ended.value}", "bold red"), (f"{letter.terminal_reason}: {letter.error_message}", "red")
    )
    plan = app.executions.plan_redrive(second.id)
    again = ", ".join(step.name for step in plan.steps)
    BANK.set()
    presenter.line((f"$ windlass execution redrive {second.id} --dry-run", "bold"))
    presenter.line((f"calls again: {again}", "yellow"))
    presenter.line(("the bank is back", "bold"), ("$ windlass execution redrive … --yes", "bold"))
    app.executions.redrive(second.id, expected_version=plan.row_version, note="the bank was down")
    result = second.result(timeout=LONGEST_WAIT)
    _show_log(presenter, shop, orders, second)
    calls = ", ".join(f"{name} {count}" for name, count in CALLS.items())
    presenter.line(("✓", "green"), (f"{result}; calls: {calls}", ""))
    presenter.expect("an execution without retries left has a dead letter", ended is ExecutionStatus.DLQ)
    presenter.expect("the re-drive went on at the step that failed", CALLS["price"] == 2 and CALLS["charge"] == 4)
    presenter.expect("its dead letter is gone", not list(app.dead_letters.find()))


def _show_publication(presenter: Presenter, shop: Shop) -> None:
    """Show what a second pipeline got, in the commits in which the orders succeeded."""
    app = shop.app
    presenter.line(("$ windlass publication list", "bold"))
    (backlog,) = app.publications.backlog()
    admitted = f"{backlog.last_hour.admitted} admitted, {backlog.waiting} waiting"
    presenter.line((f"{backlog.publication} → {backlog.subscriber}", "bold"), (admitted, ""))
    handoffs = app.publications.list(publication="receipts").items
    executions = [app.executions.handle(one.execution_id) for one in handoffs if one.execution_id is not None]
    entered = [execution.result(timeout=LONGEST_WAIT) for execution in executions]
    for text in entered:
        presenter.line(("✓", "green"), (f"pipeline books: {text}", ""))
    presenter.expect("each order was handed over once, in the commit of its success", len(set(entered)) == 2)


def _show_log(presenter: Presenter, shop: Shop, orders: Pipeline, handle: ExecutionHandle) -> None:
    names = [step.name for step in orders.definition.steps]
    rows = [_row(row, names) for row in shop.app.executions.history(handle.id)]
    presenter.table(["version", "step", "transition", "attempt", "value"], rows)


def _row(row: ExecutionTransition, names: list[str]) -> list[Cell]:
    shown = row.error if row.error is not None else "" if row.value is None else str(row.value)
    kind = "items stored" if names[row.step] == "lines" and row.kind == "staged" else KINDS.get(row.kind, row.kind)
    style = "red" if row.error is not None else "green" if row.kind == "ended" else ""
    step = "" if row.kind in ("submitted", "redriven") else names[row.step]
    return [(str(row.version), "bold"), (step, ""), (kind, style), (str(row.attempt), "dim"), (shown, style or "dim")]
