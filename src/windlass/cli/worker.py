"""`windlass worker`: a banner, then jobs until SIGTERM or SIGINT; with `--processes` a supervisor over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from windlass import loggers
from windlass._version import __version__
from windlass.app import Windlass
from windlass.cli import logs
from windlass.cli.application import application, load_app
from windlass.cli.output import facts, write_line
from windlass.cli.reloader import RELOAD, Reloader
from windlass.cli.source_watch import SourceWatch
from windlass.cli.supervisor import Lifeline, Supervisor
from windlass.errors import ConfigurationError
from windlass.node import Node
from windlass.runtime import exits
from windlass.store_wait import DEFAULT_WAIT, StoreWait
from windlass.stores import migrate
from windlass.stores.sqlite.dialect import SqliteDatabase
from windlass.worker import FAILED, FORCED

logger = loggers.logger("windlass.worker")

SHOWN_TARGETS = 8
RELOAD_DRAIN = 1.0
"""Seconds that running jobs may continue when a source file has changed, unless --drain-timeout is given."""


class Shape(NamedTuple):
    """The options of a worker."""

    processes: int
    concurrency: int | None
    queues: tuple[str, ...] | None
    drain_timeout: float | None
    burst: bool = False
    reloads: bool = False
    wait: float = DEFAULT_WAIT


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    del context
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise click.BadParameter("expected queue names separated by commas, e.g. default,billing", param=parameter)
    return names


@click.command(
    name="worker",
    epilog="SIGTERM or Ctrl-C drains: running jobs may finish, a second signal stops them. "
    "Exit codes: 0 drained, 1 could not start or lost its store, 3 forced.",
)
@application
@click.option(
    "--processes",
    "-p",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    show_envvar=True,
    help="Worker processes; one that exits unexpectedly is restarted.",
)
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(min=1),
    show_envvar=True,
    help="Jobs at a time in each process; default: the setting node.concurrency.",
)
@click.option(
    "--queues",
    "-q",
    callback=_names,
    metavar="NAME,…",
    show_envvar=True,
    help="Serve these queues only; default: all.",
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    show_envvar=True,
    help="How long running jobs may continue when it drains; default: the setting node.drain_timeout.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=DEFAULT_WAIT,
    show_default=True,
    metavar="SECONDS",
    show_envvar=True,
    help="How long to wait at the start for a store that is not reachable.",
)
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS, case_sensitive=False),
    default="info",
    show_default=True,
    show_envvar=True,
    help="For programs that have not set up logging themselves.",
)
@click.option(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    default="text",
    show_default=True,
    show_envvar=True,
    help="Likewise.",
)
@click.option(
    "--burst", is_flag=True, show_envvar=True, help="Run the jobs that are due, and those they cause; then exit."
)
@click.option(
    "--reload",
    is_flag=True,
    show_envvar=True,
    help="For development: restart when an imported source file changes.",
)
@click.option("--reloads", is_flag=True, hidden=True, help="Exit when a source file changes.")
@click.option("--lifeline", type=int, hidden=True, help="Number of the socket to the supervisor.")
def command(
    location: str,
    processes: int,
    concurrency: int | None,
    queues: tuple[str, ...] | None,
    drain_timeout: float | None,
    wait: float,
    log_level: str,
    log_format: str,
    burst: bool,
    reload: bool,
    reloads: bool,
    lifeline: int | None,
) -> None:
    """Run the jobs of APP until it is stopped."""
    shape = Shape(processes, concurrency, queues, drain_timeout, burst, reloads, wait)
    options = ["--log-level", log_level, "--log-format", log_format, *_options(shape)]
    if reload and not reloads:  # the child of a reloader inherits the variable
        _refuse_with_reload(shape)
        logs.set_up(log_level, log_format)
        raise SystemExit(Reloader(["worker", location, "--reloads", *options]).run())
    app, store_wait = load_app(location), StoreWait(wait)
    logs.set_up(log_level, log_format)
    if reloads:
        facts(f"windlass {__version__}", banner(app, location, shape))
    if lifeline is not None:
        supervisor = Lifeline(lifeline)
        code = _run(app, shape, store_wait)
        if code != FAILED:
            supervisor.report_drained()
        raise SystemExit(code)
    _prepare(app, shape, store_wait)
    facts(f"windlass {__version__}", banner(app, location, shape))
    if processes == 1:
        raise SystemExit(_run(app, shape, store_wait))
    app.close()  # the children have connections of their own
    raise SystemExit(Supervisor(["worker", location, "--processes", "1", *options], processes).run())


def _options(shape: Shape) -> list[str]:
    """Return the options for a child with the same shape."""
    options = [] if shape.concurrency is None else ["--concurrency", str(shape.concurrency)]
    options += [] if shape.queues is None else ["--queues", ",".join(shape.queues)]
    options += [] if shape.drain_timeout is None else ["--drain-timeout", str(shape.drain_timeout)]
    options += ["--wait", f"{shape.wait:g}"]
    return [*options, "--burst"] if shape.burst else options


def _refuse_with_reload(shape: Shape) -> None:
    if shape.processes > 1 or shape.burst:
        other = "--processes" if shape.processes > 1 else "--burst"
        raise click.UsageError(f"--reload is for one process that stays, during development: leave out {other}")


def _run(app: Windlass, shape: Shape, store_wait: StoreWait) -> int:
    def ready(node: Node) -> None:
        write_line(f"ready: node {node.id}")

    try:
        worker = app.worker(concurrency=shape.concurrency, queues=shape.queues, drain_timeout=shape.drain_timeout)
        if not shape.reloads:
            return worker.run(ready, burst=shape.burst, store_wait=store_wait)
        watch = SourceWatch(lambda: worker.drain(RELOAD_DRAIN if shape.drain_timeout is None else None))
        watch.start()
        code = worker.run(ready, store_wait=store_wait)
        if watch.changed is None:
            return code
        if code == FORCED:
            exits.end_with(RELOAD)
        return RELOAD
    finally:
        app.close()


def _prepare(app: Windlass, shape: Shape, store_wait: StoreWait) -> None:
    """Check once what would keep every process from starting."""
    if shape.processes > 1 and isinstance(app.database, SqliteDatabase) and app.database.path == ":memory:":
        raise ConfigurationError(
            f"{app.database.description} belongs to one process, so {shape.processes} of them cannot share it; "
            "use a file (sqlite:///shop.db) or a server"
        )
    # The checks of a start: something is allowed, the store answers, its schema is current.
    store_wait.run(app.check_startable)
    if shape.queues is not None:
        _warn_of_unknown_queues(app, shape.queues)


def _warn_of_unknown_queues(app: Windlass, names: Sequence[str]) -> None:
    """Warn about unused queue names: a misspelt one makes a worker that waits forever."""
    known = [queue.name for queue in app.queues()]
    unknown = [name for name in names if name not in known]
    if unknown:
        there = f"queues with jobs: {', '.join(known)}" if known else "no queue has had a job yet"
        logger.warning("no job was ever enqueued in %s; %s", ", ".join(unknown), there)


def banner(app: Windlass, location: str, shape: Shape) -> list[tuple[str, str]]:
    """Return the labelled lines of the worker's banner."""
    concurrency = app.settings.node.concurrency if shape.concurrency is None else shape.concurrency
    jobs = f"{concurrency} jobs at a time"
    return [
        ("app", location),
        ("store", app.database.description),
        ("schema", _schema(app)),
        ("queues", "all" if shape.queues is None else ", ".join(shape.queues)),
        ("concurrency", jobs if shape.processes == 1 else f"{shape.processes} processes, {jobs} each"),
        ("wakeups", app.database.wakeup_mode),
        ("targets", _targets(app)),
    ]


def _schema(app: Windlass) -> str:
    known = migrate.migrations(app.database.dialect.name)
    return f"current ({known[-1].name})"


def _targets(app: Windlass) -> str:
    names = sorted(app.registry.targets)
    shown = names[:SHOWN_TARGETS]
    if len(names) > len(shown):
        shown.append(f"and {len(names) - len(shown)} more")
    shown += [f"everything in {prefix}" for prefix in app.allow]
    return ", ".join(shown) if shown else "what the target policy allows"
