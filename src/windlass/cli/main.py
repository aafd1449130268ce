"""The `windlass` command: finds the subcommand, and turns our errors into a line and an exit code.

Exit codes: 0 done, 1 an error, a refusal or a "no" (`migrate --check`), 2 wrong usage, 3 a worker forced to stop.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from windlass._version import __version__
from windlass.cli.groups import NounGroup
from windlass.domain.control_characters import visible
from windlass.errors import InvalidOptionError, WindlassError

COMMANDS: Final = {
    "batch": ("windlass.cli.batch", "List batches, follow, cancel, pause, resume and retry them."),
    "bench": ("windlass.cli.bench.command", "Measure what a store can do, and check that nothing was lost."),
    "circuit": ("windlass.cli.circuit", "List circuits, open, close and reset them."),
    "demo": ("windlass.cli.demo.command", "Watch it work: a small shop on SQLite, nothing else needed."),
    "dlq": ("windlass.cli.dlq.command", "List, group, show, re-drive and purge dead letters."),
    "execution": ("windlass.cli.execution.command", "List, show, explain, steer, re-drive and compare executions."),
    "health": ("windlass.cli.health", "Check whether an application can work and, if not, why."),
    "job": ("windlass.cli.job.command", "List, show, explain, follow, cancel, pause, resume and retry jobs."),
    "migrate": ("windlass.cli.migrate", "Bring a store's schema up to date, or say how far it is."),
    "node": ("windlass.cli.node", "List the worker processes of the cluster, or have one leave."),
    "pipeline": ("windlass.cli.pipeline", "List pipelines, with what their failures mean."),
    "queue": ("windlass.cli.queue", "List queues, pause, resume and limit them."),
    "publication": ("windlass.cli.publication", "List, pause, resume and retry what is passed on to subscribers."),
    "reject": ("windlass.cli.reject.command", "List, group and re-drive rejected items of executions."),
    "resource": ("windlass.cli.resource", "List resources, and say how many jobs may use one at a time."),
    "schedule": ("windlass.cli.schedule.command", "List, show, steer and preview schedules."),
    "worker": ("windlass.cli.worker", "Run the jobs of an application until it is stopped."),
}
"""The module of each subcommand (as `command`), and its summary. Imported when called, so that help is fast."""


class Commands(NounGroup):
    """Imports a subcommand when it is used; a `WindlassError` ends the program with its message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidOptionError as error:
            raise click.UsageError(visible(str(error))) from error
        except WindlassError as error:
            raise click.ClickException(visible(str(error))) from error


@click.group(
    cls=Commands,
    context_settings={"auto_envvar_prefix": "WINDLASS", "help_option_names": ["-h", "--help"]},
    epilog="Every option can be set by the variable its help names, e.g. WINDLASS_WORKER_CONCURRENCY=20.",
)
@click.version_option(__version__, prog_name="windlass", message="%(prog)s %(version)s")
def main() -> None:
    """Durable background jobs in the database you already have."""
