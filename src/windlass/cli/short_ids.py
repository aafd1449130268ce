"""Ids as people type them: in full, or shortened to an unambiguous prefix."""

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
"""Shortest prefix, in digits."""
DIGITS: Final = 32
MAX_SHOWN: Final = 5
_START: Final = re.compile(rf"[0-9a-f]{{{LEAST},{DIGITS - 1}}}")


def job_id(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Callback of an argument: a full id, or a prefix of one."""
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
    """Return the id of the job with this prefix; an error names the candidates if there are several."""
    if len(typed) > DIGITS:  # with its dashes
        return typed
    first, last = typed.ljust(DIGITS, "0"), typed.ljust(DIGITS, "f")
    beyond = UUID(int=min(int(last, 16) + 1, 2**128 - 1))  # a page begins below its cursor
    page = app.find(cursor=str(beyond), limit=MAX_SHOWN + 1)
    found = [job for job in page if job.id.hex >= first]
    if not found:
        raise click.ClickException(f"no job has an id that begins with {typed}")
    if len(found) > 1:
        shown = "".join(f"\n  {job.id}  {job.status.value}  {visible(job.target)}" for job in found[:MAX_SHOWN])
        more = "\n  …" if len(found) > MAX_SHOWN else ""
        raise click.ClickException(f"{typed} is the beginning of several ids, type more of it:{shown}{more}")
    return str(found[0].id)


def full_ids(app: Windlass, typed: Sequence[str]) -> list[str]:
    """Do the same for several ids; duplicates are dropped."""
    return list(dict.fromkeys(full_id(app, one) for one in typed))
