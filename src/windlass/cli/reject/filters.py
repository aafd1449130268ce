"""The filters of rejects as options, each by its own name."""

from __future__ import annotations

from functools import wraps
from typing import Any, Final

import click

from windlass.cli.parameters import Command, moment
from windlass.client.reject_filters import RejectFiltersDict

_NAMES: Final = {
    "fingerprint": "fingerprint",
    "pipeline": "pipeline",
    "step": "step",
    "error_class": "error_class",
    "tenant": "tenant",
    "execution": "execution_id",
    "since": "created_after",
    "until": "created_before",
}
"""The filters of `app.rejects` by the names of their options."""


def reject_filters(command: Command) -> Command:
    """Pass a command the filters of `app.rejects` as `filters`."""

    @wraps(command)
    def with_filters(*args: Any, **options: Any) -> Any:
        named = {name: options.pop(option) for option, name in _NAMES.items()}
        return command(*args, filters=RejectFiltersDict(**named), **options)  # type: ignore[typeddict-item]

    wrapped: Command = with_filters
    for option in reversed(_options()):
        wrapped = option(wrapped)
    return wrapped


def _options() -> list[Any]:
    ages = "Rejected since then: 30s, 15m, 2h, 3d, 1w, or 2030-01-31T12:00."
    named: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("--fingerprint", "-f"), {"help": "Of this very item, as `reject groups` names it."}),
        (("--pipeline", "-p"), {"metavar": "NAME", "help": "Of this pipeline."}),
        (("--step", "-s"), {"metavar": "NAME", "help": "Given up by this step."}),
        (("--error-class", "-e"), {"metavar": "NAME", "help": "Given up for an error of this class."}),
        (("--tenant",), {"help": "Of this tenant; of all if not given."}),
        (("--execution",), {"metavar": "ID", "help": "Of this execution."}),
        (("--since",), {"callback": moment, "metavar": "AGE|TIME", "help": ages}),
        (("--until",), {"callback": moment, "metavar": "AGE|TIME", "help": "Rejected before then."}),
    ]
    return [click.option(*names, show_envvar=True, **how) for names, how in named]
