"""Groups of commands that suggest the right name for a mistyped one. (For options click does.)"""

from __future__ import annotations

import difflib

import click


class NounGroup(click.Group):
    """The verbs of a noun, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, for help and for "did you mean"."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the one that was probably meant."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(names)}"
            raise click.UsageError(f"no such command: {name}{hint}", ctx)
        return super().resolve_command(ctx, args)
