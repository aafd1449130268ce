"""Draws docs/images/pipelines.svg, the way of an execution and its failure channels: `make docs-pictures`."""

import sys
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from docs.svg import LINE, MONO, TEXT, Box, Point, arrow, label, picture

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "pipelines.svg"

STEP: Final = "#1f6fc4"
DONE: Final = "#23803c"
REJECT: Final = "#a8720f"
DEAD: Final = "#c33636"
BACKLOG: Final = "#1b7f83"
BOUNDARY: Final = "#6a4fb0"

WAY: Final = 116
"""Height of the line on which an execution goes."""
CHANNELS: Final = 312
"""Where the boxes of the channels begin."""

PARSE, LINES = Box("parse", 218, WAY, STEP, width=88), Box("lines", 368, WAY, STEP, width=88)
TOTAL, SUCCEEDED = Box("total", 764, WAY, STEP, width=88), Box("SUCCEEDED", 912, WAY, DONE, width=112)
PARTS: Final = (WAY - 58, WAY, WAY + 58)
"""Heights of the parts of items."""
PARTS_LEFT, PARTS_RIGHT = 516, 644
ITEM, ITEMS_OF_PART = 13, 6
REJECTED: Final = (2, 3)
"""The part and the number of the item that is drawn as rejected."""


class Channel(NamedTuple):
    """One failure channel."""

    title: str
    left: float
    color: str
    lines: tuple[str, ...]


WIDTH: Final = 296
CHANNEL_BOXES: Final = (
    Channel(
        "execution DLQ",
        20,
        DEAD,
        ("scope: the whole execution", "growing: a dependency is down", "back: same id, goes on at its cursor"),
    ),
    Channel(
        "item reject sink",
        346,
        REJECT,
        ("scope: one item, the others go on", "growing: bad data, changed rules", "back: enters its own step again"),
    ),
    Channel(
        "publication backlog",
        672,
        BACKLOG,
        ("scope: before the next execution", "growing: others admit too slowly", "back: delivered by its own retries"),
    ),
)


def boundary(text: str, at: Point) -> str:
    """A commit: the version that the execution has after it."""
    x, y = at
    return (
        f'<rect x="{x - 14:g}" y="{y - 10:g}" width="28" height="20" rx="10" fill="{BOUNDARY}"/>'
        f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle" {MONO} font-size="11.5" font-weight="600" '
        f'fill="#fff">{escape(text)}</text>'
    )


def part(number: int) -> str:
    """A part with its items, one of which is rejected."""
    y = PARTS[number]
    height = 34
    frame = (
        f'<rect x="{PARTS_LEFT}" y="{y - height / 2:g}" width="{PARTS_RIGHT - PARTS_LEFT}" height="{height}" rx="8" '
        f'fill="none" stroke="{LINE}" stroke-width="1.5"/>'
    )
    items = [
        f'<rect x="{_item_left(item):g}" y="{y - ITEM / 2:g}" width="{ITEM}" height="{ITEM}" rx="3" '
        f'fill="{REJECT if (number, item) == REJECTED else STEP}"/>'
        for item in range(ITEMS_OF_PART)
    ]
    return frame + "".join(items)


def _item_left(item: int) -> float:
    return PARTS_LEFT + 13 + item * (ITEM + 5)


def channel(one: Channel) -> str:
    """The box of a channel: its title, and what it is for."""
    head = 30
    drawn = [
        (
            f'<rect x="{one.left:g}" y="{CHANNELS}" width="{WIDTH}" height="116" rx="8" fill="none" '
            f'stroke="{one.color}" stroke-width="1.8"/>'
        ),
        (
            f'<path d="M{one.left:g} {CHANNELS + head}v-{head - 8}a8 8 0 0 1 8 -8h{WIDTH - 16}a8 8 0 0 1 8 8'
            f'v{head - 8}z" fill="{one.color}"/>'
        ),
        (
            f'<text x="{one.left + 14:g}" y="{CHANNELS + 20}" font-size="14" font-weight="600" fill="#fff">'
            f"{escape(one.title)}</text>"
        ),
    ]
    drawn += [label(text, (one.left + 14, CHANNELS + 54 + 23 * row), "start") for row, text in enumerate(one.lines)]
    return "".join(drawn)


def way() -> list[str]:
    """From the submission to the end, with every commit."""
    code = (
        f'<rect x="20" y="{WAY - 21}" width="92" height="42" rx="8" fill="none" stroke="{LINE}" stroke-width="1.5"/>'
        f'<text x="66" y="{WAY + 4.5:g}" text-anchor="middle" {MONO} font-size="13" fill="{TEXT}">submit(…)</text>'
    )
    fork, join = 436, 680
    chunks = [arrow((LINES.right, WAY), (fork, WAY), (fork, y), (PARTS_LEFT, y)) for y in (PARTS[0], PARTS[2])]
    ends = [
        f'<path d="M{PARTS_RIGHT} {y:g}H{join}V{WAY}" fill="none" stroke="{LINE}" stroke-width="1.8"/>'
        for y in (PARTS[0], PARTS[2])
    ]
    return [
        code,
        arrow((112, WAY), (PARSE.left, WAY)),
        arrow((PARSE.right, WAY), (LINES.left, WAY)),
        *chunks,
        arrow((LINES.right, WAY), (PARTS_LEFT, WAY)),
        *ends,
        arrow((PARTS_RIGHT, WAY), (TOTAL.left, WAY)),
        arrow((TOTAL.right, WAY), (SUCCEEDED.left, WAY)),
        *(part(number) for number in range(len(PARTS))),
        *(box.drawn() for box in (PARSE, LINES, TOTAL, SUCCEEDED)),
        *(boundary(f"v{number}", at) for number, at in enumerate(_commits(fork, join), 1)),
        label("step", (PARSE.x, WAY - 32)),
        label("expand", (LINES.x, WAY - 32)),
        label("price: parts of items, side by side", ((PARTS_LEFT + PARTS_RIGHT) / 2, 24)),
        label("reduce", (TOTAL.x, WAY - 32)),
    ]


def _commits(fork: float, join: float) -> list[Point]:
    return [
        ((112 + PARSE.left) / 2 - 4, WAY),
        ((PARSE.right + LINES.left) / 2 - 4, WAY),
        *((fork + 36, y) for y in PARTS),
        (join, WAY),
        ((TOTAL.right + SUCCEEDED.left) / 2 - 4, WAY),
    ]


def failures() -> list[str]:
    """What leads into the channels, and back."""
    part_number, item = REJECTED
    x = _item_left(item) + ITEM / 2
    return [
        arrow((PARSE.x - 20, PARSE.bottom), (PARSE.x - 20, CHANNELS)),
        label("no retries left,", (PARSE.x - 34, 208), "end"),
        label("or not worth one", (PARSE.x - 34, 226), "end"),
        arrow((PARSE.x + 20, CHANNELS), (PARSE.x + 20, PARSE.bottom)),
        label("re-drive", (PARSE.x + 34, 276), "start"),
        arrow((x, PARTS[part_number] + ITEM / 2), (x, CHANNELS)),
        label("RejectItem, or", (x - 10, 240), "end"),
        label("recover_on_failure", (x - 10, 258), "end"),
        arrow((SUCCEEDED.x, SUCCEEDED.bottom), (SUCCEEDED.x, CHANNELS), dashed=True),
        label("publish", (SUCCEEDED.x - 10, 240), "end"),
    ]


def draw() -> str:
    """The whole picture."""
    legend = [
        boundary("vN", (34, 466)),
        label(
            "a boundary: one commit of value, position, version and log row; what follows starts after it",
            (58, 471),
            "start",
        ),
    ]
    elements = [*failures(), *way(), *legend, *(channel(one) for one in CHANNEL_BOXES)]
    return picture("The way of an execution, and its failure channels", (988, 488), elements)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: written\n")


if __name__ == "__main__":
    main()
