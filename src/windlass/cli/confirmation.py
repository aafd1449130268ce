"""Asking before something that cannot be taken back, if there is somebody to ask."""

from __future__ import annotations

import sys

import click


def confirm(question: str, *, yes: bool) -> None:
    """Go on, or end the command: nobody to ask is wrong usage (2), and a "no" is a refusal (1)."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody can be asked here: pass --yes")
    click.confirm(question, abort=True, err=True)
