"""Ids as people type them: in full, or as many of their first digits as tell one job from all others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import click

from windlass.app import Windlass
from windlass.domain.control_characters import visible
from windlass.domain.identity import parse_job_id
from windlass.errors import InvalidOptionError

LEAST: Final = 6
"""Digits that a short id must have."""
DIGITS: Final = 32
MOST_SHOWN: Final = 5
_START: Final = re.compile(rf"[0-9a-f]{{{LEAST},{DIGITS - 1}}}")


def job_id(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Callback of an argument: an id in full, or the digits it begins with."""
    del context
    try:
        return parse_job_id(value)
    except InvalidOptionError as error:
        digits = value.strip().lower().replace("-", "")
        if _START.fullmatch(digits):
            return digits
        hint = f", or at least its first {LEAST} digits"
        raise click.BadParameter(f"{error}{hint}", param=parameter) from None


def job_ids(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Callback of an argument: ids, each once, in the order given."""
    return list(dict.fromkeys(job_id(context, parameter, value) for value in values))


def full_id(app: Windlass, typed: str) -> str:
    """The id of the one job that was meant; an error that names the candidates if there are several."""
    if len(typed) > DIGITS:  # with its dashes
        return typed
    first, last = typed.ljust(DIGITS, "0"), typed.ljust(DIGITS, "f")
    beyond = UUID(int=min(int(last, 16) + 1, 2**128 - 1))  # a page begins below its cursor
    page = app.find(cursor=str(beyond), limit=MOST_SHOWN + 1)
    found = [job for job in page if job.id.hex >= first]
    if not found:
        raise click.ClickException(f"no job has an id that begins with {typed}")
    if len(found) > 1:
        shown = "".join(f"\n  {job.id}  {job.status.value}  {visible(job.target)}" for job in found[:MOST_SHOWN])
        more = "\n  …" if len(found) > MOST_SHOWN else ""
        raise click.ClickException(f"{typed} is the beginning of several ids, type more of it:{shown}{more}")
    return str(found[0].id)


def full_ids(app: Windlass, typed: Sequence[str]) -> list[str]:
    """The same for several, each once."""
    return list(dict.fromkeys(full_id(app, one) for one in typed))
