"""Ids as people type them: in full, or shortened to an unambiguous prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from uuid import UUID

import click

from windlass.app import Windlass
from windlass.client.filters import Page
from windlass.domain.control_characters import visible
from windlass.domain.execution import Execution
from windlass.domain.identity import parse_job_id
from windlass.domain.job import Job
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
    return _full(typed, lambda cursor, limit: app.find(cursor=cursor, limit=limit), "job", lambda job: job.target)


def full_ids(app: Windlass, typed: Sequence[str]) -> list[str]:
    """Do the same for several ids; duplicates are dropped."""
    return list(dict.fromkeys(full_id(app, one) for one in typed))


def full_execution_id(app: Windlass, typed: str, tenant: str) -> str:
    """Return the id of the tenant's execution with this prefix."""
    return _full(
        typed,
        lambda cursor, limit: app.executions.find(tenant, cursor=cursor, limit=limit),
        f"execution of tenant {visible(tenant)}",
        lambda execution: f"{execution.pipeline}@{execution.pipeline_version}",
    )


T = TypeVar("T", Job, Execution)


def _full(typed: str, find: Callable[[str, int], Page[T]], noun: str, called: Callable[[T], str]) -> str:
    if len(typed) > DIGITS:  # with its dashes
        return typed
    first, last = typed.ljust(DIGITS, "0"), typed.ljust(DIGITS, "f")
    beyond = UUID(int=min(int(last, 16) + 1, 2**128 - 1))  # a page begins below its cursor
    found = [one for one in find(str(beyond), MAX_SHOWN + 1) if one.id.hex >= first]
    if not found:
        raise click.ClickException(f"no {noun} has an id that begins with {typed}")
    if len(found) > 1:
        shown = "".join(f"\n  {one.id}  {one.status.value}  {visible(called(one))}" for one in found[:MAX_SHOWN])
        more = "\n  …" if len(found) > MAX_SHOWN else ""
        raise click.ClickException(f"{typed} is the beginning of several ids, type more of it:{shown}{more}")
    return str(found[0].id)
