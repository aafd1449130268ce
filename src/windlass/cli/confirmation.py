"""Confirmation before something that cannot be undone, if a terminal is there to ask."""

from __future__ import annotations

import sys

import click


def confirm(question: str, *, yes: bool) -> None:
    """Return if confirmed, else end the command: no terminal is wrong usage (2), "no" is a refusal (1)."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal to confirm on: pass --yes")
    click.confirm(question, abort=True, err=True)
