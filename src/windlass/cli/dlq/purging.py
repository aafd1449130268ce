"""`windlass dlq purge`: dead letters are forgotten."""

from __future__ import annotations

from datetime import timedelta

import click

from windlass.app import Windlass
from windlass.cli.asking import confirm
from windlass.cli.dlq.redriving import letters
from windlass.cli.output import say
from windlass.cli.parameters import age, on_application, yes_option


@click.command(name="purge")
@on_application
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    show_envvar=True,
    help="Died longer ago than this: 12h, 90d, 6w. If not given: the setting dead_letters.retention.",
)
@yes_option
def command(app: Windlass, older_than: timedelta | None, yes: bool) -> None:
    """Forget jobs that died long ago, live or archived, with all that is kept of them.

    Workers do the same by themselves. It cannot be taken back; only idempotency keys stay.

    \b
        windlass dlq purge --older-than 30d
    """
    since = timedelta(seconds=app.settings.dead_letters.retention) if older_than is None else older_than
    confirm(f"Forget every dead letter older than {_span(since)} in {app.database.description}?", yes=yes)
    say(f"forgot {letters(app.dead_letters.purge(since))}")


def _span(age: timedelta) -> str:
    hours, days = age.total_seconds() / 3600, age / timedelta(days=1)
    return f"{days:g} days" if days >= 2 else f"{hours:g} hours"
