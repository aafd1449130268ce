"""`windlass job signal`: release jobs that wait."""

from __future__ import annotations

import json
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import note, write_json, write_line
from windlass.cli.parameters import json_option, on_application
from windlass.domain.signal import SentSignal, rejected
from windlass.submission.error_text import short


@click.command(
    name="signal", epilog="Exit codes: 0 at least one job was released, 1 no job waited for it, 2 wrong usage."
)
@on_application
@click.argument("key", metavar="KEY_OR_ID")
@click.option("--payload", "-p", metavar="JSON", show_envvar=True, help="What the body gets as ctx.signal.payload.")
@click.option("--approve", is_flag=True, show_envvar=True, help="The outcome is approved.")
@click.option("--reject", metavar="REASON", show_envvar=True, help="The outcome is rejected, for this reason.")
@json_option("job signal")
@click.pass_context
def command(
    context: click.Context,
    /,
    app: Windlass,
    key: str,
    payload: str | None,
    approve: bool,
    reject: str | None,
    as_json: bool,
) -> None:
    """Release the jobs that wait for a key, or the waiting job of an id.

    Their bodies get outcome and payload, and decide what a rejection means. Nothing is kept for jobs that wait later.

    \b
        windlass job signal order:7:approved --approve
        windlass job signal order:7:approved --reject "out of stock" --payload '{"until": "May"}'
    """
    if approve and reject is not None:
        raise click.UsageError("give --approve or --reject, not both", context)
    value = _payload(payload)
    if reject is not None:
        count = app.signal(key, rejected(reject, value))
    else:
        count = app.signal(key, SentSignal("approved" if approve else "signaled", value))
    if as_json:
        write_json({"key": key, "released": count})
    elif count:
        write_line(f"signaled {phrases.jobs(count)}")
    else:
        note("no job waits for it; nothing was kept")
    if not count:
        raise SystemExit(1)


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"expected JSON, got {short(text)} ({error}); quote texts twice: '\"like this\"'", param_hint="--payload"
        ) from None


def _refused(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")
