"""Going on where a page has ended."""

from __future__ import annotations

import shlex
from datetime import datetime

import click
from click.core import ParameterSource

from windlass.cli import phrases


def again(cursor: str) -> str:
    """What was typed, with another cursor; an age is the time it meant, so that it stays the same."""
    context = click.get_current_context()
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "cursor" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            given = context.params[name]
            pairs = [f"{key}={_written(value)}" for key, value in given.items()] if isinstance(given, dict) else [given]
            for value in pairs:
                words += [parameter.opts[0], _written(value)]
    return shlex.join([*words, "--cursor", cursor])


def _written(value: object) -> str:
    return phrases.utc(value) if isinstance(value, datetime) else str(value)
