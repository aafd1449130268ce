"""Refuse to change an unknown queue, circuit or resource: in an incident, a typo would leave the right one running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from windlass.domain.suggestions import closest
from windlass.errors import UnknownCircuitError, UnknownQueueError


@contextmanager
def known_name(*, may_create: bool = True) -> Iterator[None]:
    """Convert the error of an unknown queue or circuit into one in terms of the command line."""
    try:
        yield
    except UnknownQueueError as error:
        raise unknown("queue", error.queue, error.suggestion, may_create=may_create) from None
    except UnknownCircuitError as error:
        raise unknown("circuit", error.service, error.suggestion, may_create=may_create) from None


def check_known(noun: str, name: str, known: Iterable[str]) -> None:
    """Do the same for names that only the command looks up."""
    names = set(known)
    if name not in names:
        raise unknown(noun, name, closest(name, names), may_create=True)


def unknown(noun: str, name: str, suggestion: str | None, *, may_create: bool) -> click.ClickException:
    """Return the error of a name that is not known."""
    hint = "" if suggestion is None else f"; did you mean {suggestion}?"
    way = f" Pass --create if {name} is meant." if may_create else ""
    return click.ClickException(f"no {noun} {name} is known, so nothing was changed{hint or '.'}{way}")
