"""Draws docs/images/clock-changes.svg, schedules when clocks change: `make docs-pictures`.

The ticks are those of the expressions themselves.
"""

import sys
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from docs.svg import LINE, MONO, TEXT, Point, label, picture
from windlass.domain.clock import from_micros, micros
from windlass.domain.cron import Cron

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "clock-changes.svg"

ZONE: Final = "Europe/Berlin"
SUMMER, WINTER = "#94690f", "#1f6fc4"
LEFT, STEP = 176, 66  # where the first half hour stands, and the width of one
EXPRESSIONS: Final = (("30 2 * * *", "a fixed time"), ("*/30 * * * *", "follows real time"))


class Panel(NamedTuple):
    """One clock change."""

    title: str
    start: datetime
    top: float


PANELS: Final = (
    Panel("Set forward: 02:00 to 03:00 does not exist", datetime(2027, 3, 28, 0, 0, tzinfo=UTC), 0),
    Panel("Set back: 02:00 to 03:00 occurs twice", datetime(2027, 10, 30, 23, 30, tzinfo=UTC), 178),
)
HALF_HOURS: Final = 8


def ticks(expression: str, start: datetime) -> list[datetime]:
    """The ticks of an expression inside a panel."""
    end = micros(start + timedelta(minutes=30 * (HALF_HOURS - 1)))
    found: list[datetime] = []
    at = Cron.parse(expression).next_after(micros(start) - 1, ZONE)
    while at is not None and at <= end:
        found.append(from_micros(at))
        at = Cron.parse(expression).next_after(at, ZONE)
    return found


def code(text: str, at: Point, anchor: str, colour: str) -> str:
    """A time or an expression."""
    x, y = at
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-size="14" {MONO}>{escape(text)}</text>'
    )


def drawn(panel: Panel) -> list[str]:
    """The clock of the zone every half hour, and below it the ticks."""
    top = panel.top
    elements = [
        f'<text x="8" y="{top + 22:g}" fill="{TEXT}" font-size="15" font-weight="600">{escape(panel.title)}</text>',
        label("the clock shows", (LEFT - 34, top + 60), "end"),
    ]
    for number in range(HALF_HOURS):
        moment = (panel.start + timedelta(minutes=30 * number)).astimezone(ZoneInfo(ZONE))
        colour = SUMMER if moment.dst() else WINTER
        x = LEFT + STEP * number
        elements += [
            f'<rect x="{x - 27:g}" y="{top + 41:g}" width="54" height="28" rx="6" fill="{colour}"/>',
            code(f"{moment:%H:%M}", (x, top + 60), "middle", "#fff"),
        ]
    for row, (expression, kind) in enumerate(EXPRESSIONS):
        y = top + 98 + 44 * row
        elements += [
            code(expression, (LEFT - 34, y), "end", TEXT),
            f'<text x="{LEFT - 34:g}" y="{y + 16:g}" text-anchor="end" fill="{TEXT}" font-size="12">{kind}</text>',
            f'<path d="M{LEFT - 27:g} {y:g}h{STEP * (HALF_HOURS - 1) + 54:g}" stroke="{LINE}" stroke-width="1.5"/>',
        ]
        for moment in ticks(expression, panel.start):
            at = LEFT + STEP * ((moment - panel.start) / timedelta(minutes=30))
            elements.append(f'<circle cx="{at:g}" cy="{y:g}" r="8" fill="#23803c"/>')
    return elements


def draw() -> str:
    """The picture."""
    elements = [element for panel in PANELS for element in drawn(panel)]
    legend = [
        f'<rect x="8" y="352" width="14" height="14" rx="3" fill="{WINTER}"/>',
        label("standard time", (28, 364), "start"),
        f'<rect x="136" y="352" width="14" height="14" rx="3" fill="{SUMMER}"/>',
        label("summer time", (156, 364), "start"),
        '<circle cx="262" cy="359" r="7" fill="#23803c"/>',
        label("a tick; left to right is real time", (276, 364), "start"),
    ]
    title = "Two schedules in Berlin on the days on which the clock is set forward and back"
    return picture(title, (LEFT + STEP * HALF_HOURS, 376), [*elements, *legend])


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: written\n")


if __name__ == "__main__":
    main()
