"""Options and arguments that several commands take."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Final

import click

from windlass.cli.application import checked_location, load_app
from windlass.client.execution_reports import DEFAULT_TENANT
from windlass.client.filters import MAX_IN_A_PAGE, JobFilters
from windlass.domain.clock import SystemClock
from windlass.domain.limits import PER_US
from windlass.stores import migrate

Command = Callable[..., Any]

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)", re.IGNORECASE)
_UNITS: Final = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def on_application(command: Command) -> Command:
    """Pass a command the application of `--app`/`-a` or `WINDLASS_APP` as `app`; close it afterwards.

    What the command does is done as `cli:<user>`, for an authorizer to judge. A SQLite file that is missing or was
    never used is an error, and is not made: there is nothing in it to look at or to steer.
    """

    @click.option(
        "--app",
        "-a",
        "location",
        metavar="MODULE:ATTRIBUTE",
        envvar="WINDLASS_APP",
        show_envvar=True,
        help="The application, e.g. shop:app.",
    )
    @wraps(command)
    def with_app(*args: Any, location: str | None, **options: Any) -> Any:
        app = load_app(checked_location(location))
        try:
            migrate.require_used(app.database)
            with app.acting_as(principal()):
                return command(*args, app=app, **options)
        finally:
            app.close()

    return with_app


def principal() -> str:
    """Return the user who runs the command, from the operating system: environment variables can be forged."""
    try:
        import pwd

        return f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:  # a number without a name, as in many containers
        return f"cli:{os.getuid()}"
    except ImportError:  # not on this system
        return f"cli:{getpass.getuser()}"


def json_option(command_path: str, text: str = "For programs.") -> Callable[[Command], Command]:
    """`--json`, as `as_json`: `@json_option("job list")`."""
    variable = f"WINDLASS_{command_path}_json".replace(" ", "_").upper()
    return click.option("--json", "as_json", is_flag=True, envvar=variable, show_envvar=True, help=text)


def yes_option(command: Command) -> Command:
    """`--yes`."""
    return click.option("--yes", "-y", is_flag=True, show_envvar=True, help="Do not ask.")(command)


def dry_run_option(text: str) -> Callable[[Command], Command]:
    """`--dry-run`."""
    return click.option("--dry-run", is_flag=True, show_envvar=True, help=text)


def create_option(noun: str) -> Callable[[Command], Command]:
    """`--create`, for a name that is not known yet."""
    text = f"Do it even if no such {noun} is known yet."
    return click.option("--create", is_flag=True, show_envvar=True, help=text)


def rate_options(command: Command) -> Command:
    """`--rate` and `--per`, as `rate` and `per`."""
    unit = click.option(
        "--per",
        type=click.Choice(list(PER_US)),
        default="second",
        show_default=True,
        show_envvar=True,
        help="The rate's unit.",
    )
    rate = click.option("--rate", type=int, show_envvar=True, help="How many may start in a second, or as --per says.")
    return rate(unit(command))


def limit_option(default: int, text: str, most: int = MAX_IN_A_PAGE) -> Callable[[Command], Command]:
    """`--limit`."""
    return click.option(
        "--limit",
        "-n",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        show_envvar=True,
        help=text,
    )


def cursor_option(command: Command) -> Command:
    """`--cursor`."""
    help_text = "Go on where the page before ended; it says with what."
    return click.option("--cursor", show_envvar=True, help=help_text)(command)


def tenant_option(command: Command) -> Command:
    """`--tenant`."""
    return click.option(
        "--tenant",
        metavar="NAME",
        default=DEFAULT_TENANT,
        show_default=True,
        show_envvar=True,
        help="Of this tenant; executions of others look as if they did not exist.",
    )(command)


def filter_options(command: Command) -> Command:
    """The filters of `app.find`, as `filters`."""

    @click.option("--queue", "-q", metavar="NAME", show_envvar=True, help="Of this queue.")
    @click.option("--tag", "-t", show_envvar=True, help="With this tag.")
    @click.option("--target", metavar="MODULE:NAME", show_envvar=True, help="That call this, e.g. shop:charge.")
    @click.option("--key", show_envvar=True, help="With this business key.")
    @click.option(
        "--since",
        callback=moment,
        metavar="AGE|TIME",
        show_envvar=True,
        help="Enqueued since then: 30s, 15m, 2h, 3d, 1w, or 2030-01-31T12:00.",
    )
    @wraps(command)
    def with_filters(
        *args: Any,
        queue: str | None,
        tag: str | None,
        target: str | None,
        key: str | None,
        since: datetime | None,
        **options: Any,
    ) -> Any:
        filters = JobFilters(queue=queue, tag=tag, target=target, business_key=key, created_after=since)
        return command(*args, filters=filters, **options)

    return with_filters


def moment(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an age or a date and time; without a zone local time is meant."""
    del context
    if value is None:
        return None
    ago = _AGO.fullmatch(value.strip())
    try:
        if ago:
            return SystemClock().now() - timedelta(**{_UNITS[ago[2].lower()]: float(ago[1])})
        return datetime.fromisoformat(value.strip()).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"expected an age like 30s, 15m, 2h, 3d, 1w or a time like 2030-01-31T12:00, got {value!r}", param=parameter
        ) from None


def age(context: click.Context, parameter: click.Parameter, value: str | None) -> timedelta | None:
    """Parse an age."""
    del context
    if value is None:
        return None
    found = _AGO.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"expected an age like 12h, 90d or 6w, got {value!r}", param=parameter)
    return timedelta(**{_UNITS[found[2].lower()]: float(found[1])})
