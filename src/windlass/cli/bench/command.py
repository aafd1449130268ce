"""`windlass bench`."""

from __future__ import annotations

import json
import logging
from functools import partial

import click

from windlass.cli.bench import report
from windlass.cli.bench.measure import CONCURRENCY, Load
from windlass.cli.bench.scratch import open_stores
from windlass.cli.bench.workloads import BY_KEY, CHURN, FLOWS, LIMITED, PIPELINES, SCHEDULES, WORKLOADS, Workload, run
from windlass.cli.output import drawn, write_line

NUMBER = click.IntRange(min=1)
DEFAULT_STORE = "Default: a durable PostgreSQL started for the run, if its programs are installed, else SQLite."
WHICH = "Which of W1, W1c, W2 … W11 (default: all of these), W12, W12s, L1 … L3, F1 … F6, S1, S2, P1 … P9."

option = partial(click.option, show_envvar=True)


def chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> list[Workload]:
    """The workloads of a list of keys; without a list those of single jobs without limits."""
    del context
    if value is None:
        return list(WORKLOADS)
    names = [name.strip().upper() for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in BY_KEY]
    if unknown or not names:
        known = ", ".join(workload.key for workload in BY_KEY.values())
        raise click.BadParameter(f"expected some of {known}, got {value!r}", param=parameter)
    return [workload for key, workload in BY_KEY.items() if key in names]


@click.command(name="bench", epilog="Exit codes: 0 if every job of every workload ran exactly once, else 1.")
@option("--store", metavar="URL", help=f"Measure here, in databases or files of its own. {DEFAULT_STORE}")
@option(
    "--workload", "-w", "workloads", callback=chosen, metavar="W1,W3,…", envvar="WINDLASS_BENCH_WORKLOAD", help=WHICH
)
@option("--jobs", type=NUMBER, help="Jobs in each workload; default: its own.")
@option(
    "--concurrency",
    "-c",
    type=NUMBER,
    default=CONCURRENCY,
    show_default=True,
    help="Coroutines at a time in each draining worker.",
)
@option("--repeat", type=NUMBER, default=1, show_default=True, help="Take the median of so many runs.")
@option(
    "--churn",
    is_flag=True,
    help="Drain ten rounds through the same tables, also while a snapshot is held, in turns with W3 (W12, W12s).",
)
@option("--limited", is_flag=True, help="Drain behind limits (L1 … L3), in turns with the same without.")
@option(
    "--flows",
    is_flag=True,
    help="Drain batches, chains, a group, in turns with loose jobs; load a batch (F1 … F6).",
)
@option(
    "--schedules",
    is_flag=True,
    help="Fire schedules that are due at once, and look for the next tick (S1, S2).",
)
@option(
    "--pipeline",
    is_flag=True,
    help="Run executions of pipelines: of many items, of quick steps, published, relayed (P1 … P9).",
)
@option("--json", "as_json", is_flag=True, envvar="WINDLASS_BENCH_JSON", help="For machines.")
@option("--progress/--no-progress", default=None, help="Default: at a terminal.")
def command(
    store: str | None,
    workloads: list[Workload],
    jobs: int | None,
    concurrency: int,
    repeat: int,
    churn: bool,
    limited: bool,
    flows: bool,
    schedules: bool,
    pipeline: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Measure what a store can do, and check afterwards that every job ran exactly once."""
    logging.getLogger("windlass").addHandler(logging.NullHandler())
    asked = ((churn, CHURN), (limited, LIMITED), (flows, FLOWS), (schedules, SCHEDULES), (pipeline, PIPELINES))
    workloads = [workload for wanted, some in asked if wanted for workload in some] or workloads
    load = Load(jobs or 0, concurrency)
    with open_stores(store) as stores:
        if not as_json:
            report.introduce(stores, workloads, concurrency)
        with report.progress(drawn() and not as_json if progress is None else progress) as bar:
            results = [run(workload, stores, load, repeat, bar) for workload in workloads]
    if as_json:
        write_line(json.dumps(report.as_json(results), indent=2))
    else:
        report.show(results)
    raise SystemExit(report.exit_code(results))
