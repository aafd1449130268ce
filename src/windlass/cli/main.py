"""The `windlass` command itself: finds the subcommand, and turns our errors into a line and an exit code.

Exit codes: 0 fine, 1 an error or a "no" (`migrate --check`), 2 wrong usage, 3 a worker that was forced to stop.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any, Final

import click

from windlass._version import __version__
from windlass.errors import WindlassError

COMMANDS: Final = {
    "bench": ("windlass.cli.bench.command", "Measure what a store can do, and check that nothing was lost."),
    "demo": ("windlass.cli.demo.command", "Watch it work: a small shop on SQLite, nothing else needed."),
    "migrate": ("windlass.cli.migrate", "Bring a store's schema up to date, or say how far it is."),
    "worker": ("windlass.cli.worker", "Run the jobs of an application until told to stop."),
}
"""Where each subcommand lives (as `command`), and what it does. Imported when called, so that help is quick."""


class Commands(click.Group):
    """Imports a subcommand when it is asked for; a `WindlassError` ends the program with its message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, for help and for "did you mean"."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(self.list_commands(ctx))}"
            raise click.UsageError(f"no such command: {name}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except WindlassError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=Commands,
    context_settings={"auto_envvar_prefix": "WINDLASS", "help_option_names": ["-h", "--help"]},
    epilog="Every option can be set by the variable its help names, e.g. WINDLASS_WORKER_CONCURRENCY=20.",
)
@click.version_option(__version__, prog_name="windlass", message="%(prog)s %(version)s")
def main() -> None:
    """Durable background jobs in the database you already have."""
