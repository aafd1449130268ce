"""The filters of dead letters as options: each by its own name, or as `--filter name=value`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

import click

from windlass.cli.parameters import Command, moment
from windlass.client.dead_letter_views import RedriveFilters
from windlass.domain.dead_letter import KINDS, REASONS

NAMES: Final = tuple(sorted(RedriveFilters.__optional_keys__))
"""The names that `--filter` takes; the options have the same names, except for the two times."""
KIND: Final[Mapping[str, Any]] = {"type": click.Choice(KINDS), "help": "Of jobs, or of executions; both if not given."}
"""How the option `--kind` is declared."""
_OPTIONS: Final = {"created_after": "since", "created_before": "until"}


def letter_filters(command: Command) -> Command:
    """Pass a command the filters of `app.dead_letters` as `filters`."""

    @wraps(command)
    def with_filters(*args: Any, **options: Any) -> Any:
        named = {name: options.pop(_OPTIONS.get(name, name)) for name in NAMES}
        for name, value in options.pop("filter").items():
            if named[name] is not None:
                raise click.UsageError(f"{name} is given twice: by its option and by --filter")
            named[name] = value
        return command(*args, filters=RedriveFilters(**named), **options)  # type: ignore[typeddict-item]

    wrapped: Command = with_filters
    for option in reversed(_options()):
        wrapped = option(wrapped)
    return wrapped


def _options() -> list[Callable[[Command], Command]]:
    named: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [
        (("--kind", "-k"), KIND),
        (("--fingerprint", "-f"), {"help": "With this fingerprint, as `dlq groups` shows it."}),
        (
            ("--target",),
            {"metavar": "NAME", "help": "That called this, e.g. shop:charge; or the pipeline of executions."},
        ),
        (("--error-class", "-e"), {"metavar": "NAME", "help": "That died of an error of this class."}),
        (("--reason", "-r"), {"type": click.Choice(list(REASONS)), "help": "That died for this reason."}),
        (("--queue", "-q"), {"metavar": "NAME", "help": "Of this queue."}),
        (("--tag", "-t"), {"help": "With this tag."}),
        (
            ("--since",),
            {
                "callback": moment,
                "metavar": "AGE|TIME",
                "help": "Died since then: 30s, 15m, 2h, 3d, 1w, or 2030-01-31T12:00.",
            },
        ),
        (("--until",), {"callback": moment, "metavar": "AGE|TIME", "help": "Died before then."}),
    ]
    found: list[Callable[[Command], Command]] = [click.option(*names, show_envvar=True, **how) for names, how in named]
    found.append(
        click.option(
            "--filter",
            multiple=True,
            callback=_pairs,
            metavar="NAME=VALUE",
            show_envvar=True,
            help="The same as the option of that name; may be given several times.",
        )
    )
    return found


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = {**{name: name for name in NAMES}, **{option: name for name, option in _OPTIONS.items()}}
    for pair in values:
        written, equals, value = pair.partition("=")
        name = names.get(written.strip().replace("-", "_"))
        if not (name and equals and value.strip()):
            known = ", ".join(sorted(names))
            raise click.BadParameter(f"expected NAME=VALUE with a NAME of {known}; got {pair!r}", param=parameter)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param=parameter)
        found[name] = moment(context, parameter, value) if name in _OPTIONS else value.strip()
    return found
