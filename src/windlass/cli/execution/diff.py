"""`windlass execution diff`: what the steps of two executions gave, side by side."""

from __future__ import annotations

from typing import Any, Final

import click

from windlass.app import Windlass
from windlass.cli.output import console, drawn, json_text, write_items
from windlass.cli.parameters import json_option, on_application, tenant_option
from windlass.cli.short_ids import full_execution_id, job_id
from windlass.cli.tables import Cell, Column, pipe_epilog, table
from windlass.domain.control_characters import visible
from windlass.domain.output_differences import Difference, StepDifference

COLUMNS: Final = (Column("step"), Column("outputs"), Column("first"), Column("second"))
PHRASES: Final = {
    Difference.EQUAL: ("=", "equal", "green"),
    Difference.SAME_COUNT: ("=", "same number of items", "green"),
    Difference.DIFFERENT: ("≠", "different", "bold yellow"),
    Difference.FIRST_ONLY: ("-", "only in the first", "red"),
    Difference.SECOND_ONLY: ("+", "only in the second", "cyan"),
}
LONGEST: Final = 60
"""Number of characters of a value in a line for pipes."""
AROUND: Final = 12
"""Number of characters before the first difference that are shown of long values."""
CODES: Final = "Exit codes: 0 all outputs are equal, 1 some differ, 2 wrong usage."


@click.command(name="diff", epilog=f"{pipe_epilog('step', COLUMNS)} {CODES}")
@on_application
@click.argument("first", metavar="FIRST", callback=job_id)
@click.argument("second", metavar="SECOND", callback=job_id)
@tenant_option
@json_option("execution diff")
def command(app: Windlass, first: str, second: str, tenant: str, as_json: bool) -> None:
    """Compare what the steps of two executions gave: equal, different, or only in one of them.

    Steps are matched by name. Of steps that give items the numbers of items are compared, not the items.

    \b
        windlass execution diff 0198c0de-0000-7000-8000-000000000001 0198c0de-0000-7000-8000-000000000002
    """
    keys = [full_execution_id(app, one, tenant) for one in (first, second)]
    found = app.executions.diff(keys[0], keys[1], tenant)
    if as_json:
        write_items(found)
    elif drawn():
        _draw(keys, found)
    else:
        table(COLUMNS, [_row(one) for one in found])
    if any(one.difference not in (Difference.EQUAL, Difference.SAME_COUNT) for one in found):
        raise SystemExit(1)


def _row(one: StepDifference) -> list[Cell]:
    left, right = _pair(one, LONGEST)
    return [Cell(one.step), Cell(PHRASES[one.difference][1]), Cell(left), Cell(right)]


def _draw(keys: list[str], found: list[StepDifference]) -> None:
    """Write a line per step, and both values below those that differ."""
    from rich.text import Text

    screen = console()
    width = max((len(one.step) for one in found), default=0)
    lines = [Text.assemble(("- ", "red"), keys[0]), Text.assemble(("+ ", "cyan"), keys[1]), Text("")]
    for one in found:
        sign, phrase, style = PHRASES[one.difference]
        left, right = _pair(one, screen.width - 6)
        name = visible(one.step).ljust(width)
        equal = one.difference in (Difference.EQUAL, Difference.SAME_COUNT)
        shown = f"  {_cut(left, screen.width - width - len(phrase) - 7)}" if equal else ""
        lines.append(Text.assemble((f"{sign} ", style), (name, "bold"), f"  {phrase}", (shown, "dim")))
        if not equal and one.difference is not Difference.SECOND_ONLY:
            lines.append(Text.assemble(("    - ", "red"), left))
        if not equal and one.difference is not Difference.FIRST_ONLY:
            lines.append(Text.assemble(("    + ", "cyan"), right))
    for line in lines:
        screen.print(line, soft_wrap=True)


def _pair(one: StepDifference, width: int) -> tuple[str, str]:
    """Return both values, shortened; of long ones the part where they begin to differ."""
    left, right = _written(one.first, one.counted), _written(one.second, one.counted)
    if one.difference is Difference.FIRST_ONLY:
        return _cut(left, width), ""
    if one.difference is Difference.SECOND_ONLY:
        return "", _cut(right, width)
    if max(len(left), len(right)) <= width:
        return left, right
    same = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    start = max(0, same - AROUND) if same + AROUND > width else 0
    if start:
        left, right = f"…{left[start:]}", f"…{right[start:]}"
    return _cut(left, width), _cut(right, width)


def _written(value: Any, counted: bool) -> str:
    if counted and isinstance(value, int):
        return f"{value:,} item{'' if value == 1 else 's'}"
    return visible(json_text(value))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
