"""`windlass bench`."""

from __future__ import annotations

import json
import logging

import click

from windlass.cli.bench import report, runs
from windlass.cli.bench.catalogue import BY_KEY
from windlass.cli.bench.limited import LIMITED
from windlass.cli.bench.measure import CONCURRENCY, FLOOR_BATCH
from windlass.cli.bench.scratch import Stores
from windlass.cli.bench.workloads import WORKLOADS, Result, Workload
from windlass.cli.output import drawn, facts, say


def _chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> list[Workload]:
    del context
    if value is None:
        return list(WORKLOADS)
    names = [name.strip().upper() for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in BY_KEY]
    if unknown or not names:
        known = ", ".join(workload.key for workload in BY_KEY.values())
        raise click.BadParameter(f"expected some of {known}, got {value!r}", param=parameter)
    return [workload for key, workload in BY_KEY.items() if key in names]


@click.command(
    name="bench",
    epilog="Exit codes: 0 if every job of every workload ran exactly once, else 1; missed targets are shown, no error.",
)
@click.option(
    "--store",
    metavar="URL",
    show_envvar=True,
    help="Measure here, in databases or files of its own. Default: a durable PostgreSQL started for the run, if its "
    "programs are installed, else SQLite.",
)
@click.option(
    "--workload",
    "-w",
    "workloads",
    callback=_chosen,
    metavar="W1,W3,…",
    envvar="WINDLASS_BENCH_WORKLOAD",
    show_envvar=True,
    help="Which of W1, W1c, W2 … W9 (default: all of these), L1 … L3.",
)
@click.option("--jobs", type=click.IntRange(min=1), show_envvar=True, help="Jobs in each workload; default: its own.")
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(min=1),
    default=CONCURRENCY,
    show_default=True,
    show_envvar=True,
    help="Coroutines at a time in each draining worker.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    show_envvar=True,
    help="Take the median of so many runs.",
)
@click.option(
    "--floor", is_flag=True, show_envvar=True, help="Measure the bare statements too, in turns with the engine."
)
@click.option(
    "--limited", is_flag=True, show_envvar=True, help="Drain behind limits (L1 … L3), in turns with the same without."
)
@click.option("--json", "as_json", is_flag=True, envvar="WINDLASS_BENCH_JSON", show_envvar=True, help="For machines.")
@click.option("--progress/--no-progress", default=None, show_envvar=True, help="Default: at a terminal.")
def command(
    store: str | None,
    workloads: list[Workload],
    jobs: int | None,
    concurrency: int,
    repeat: int,
    floor: bool,
    limited: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Measure what a store can do, and check afterwards that every job ran exactly once."""
    logging.getLogger("windlass").addHandler(logging.NullHandler())
    workloads = list(LIMITED) if limited else workloads
    plan = runs.Plan(jobs, concurrency, repeat, floor or limited)
    results: dict[str, Result] = {}
    with Stores(store) as stores:
        if not as_json:
            _introduce(stores, workloads, plan)
        with report.progress_bar(drawn() and not as_json if progress is None else progress) as bar:
            for workload in workloads:
                results[workload.key] = runs.run(workload, stores, plan, bar)
    if as_json:
        say(json.dumps(report.as_json(results), indent=2))
    else:
        report.show(results)
    wrong = report.problems(results)
    for problem in wrong:
        click.echo(problem, err=True)
    raise SystemExit(1 if wrong else 0)


def _introduce(stores: Stores, workloads: list[Workload], plan: runs.Plan) -> None:
    machine = report.machine()
    rows = [("store", stores.main.description)]
    rows += [("note", stores.note)] if stores.note else []
    rows += [("SQLite", stores.sqlite.description)] if any(workload.on_sqlite for workload in workloads) else []
    rows += [
        ("machine", f"{machine['cpus']} CPUs, Python {machine['python']}, {machine['loop']}, {machine['system']}"),
        ("drains", f"{plan.concurrency} coroutines a process, default settings, jobs with 200 bytes of arguments"),
    ]
    rows += [("floor", f"the same statements on bare connections, {FLOOR_BATCH} jobs at a time")] if plan.floor else []
    facts("windlass bench", rows)
