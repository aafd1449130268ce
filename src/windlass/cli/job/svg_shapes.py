"""Shapes of the SVG picture of a flow: boxes, frames, arrows.

There is no background, and every colour keeps its distance from white and from black, so that the picture can be read
on a light and on a dark page. Nothing is loaded: fonts are the reader's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Final, NamedTuple

from windlass.cli.job.graph_texts import in_order
from windlass.domain.states import JobStatus

FILLS: Final = {
    JobStatus.PENDING: "#5a6b7f",
    JobStatus.RUNNING: "#1f6fc4",
    JobStatus.WAITING: "#7a52b3",
    JobStatus.PAUSED: "#94690f",
    JobStatus.SUCCEEDED: "#23803c",
    JobStatus.FAILED: "#c33636",
    JobStatus.CANCELED: "#7d848c",
}
LINE: Final = "#84909c"
TEXT: Final = "#71808e"
FONT: Final = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
MONO: Final = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BOX_HEIGHT: Final = 46.0
NAME_SIZE: Final = 13.0
SMALL: Final = 11.0
MONO_WIDTH: Final = 0.61
"""Width of a letter, in font sizes."""
PLAIN_WIDTH: Final = 0.58
ICON_ROOM: Final = 38.0
_ROUND: Final = 10.0

_ICONS: Final = {
    JobStatus.PENDING: "M0 -4V0.4L2.9 2.4",
    JobStatus.RUNNING: "M-2.2 -3.8L4 0L-2.2 3.8z",
    JobStatus.WAITING: "M-4 0h.01M0 0h.01M4 0h.01",
    JobStatus.PAUSED: "M-2.2 -3.4V3.4M2.2 -3.4V3.4",
    JobStatus.SUCCEEDED: "M-4.2 .4L-1.4 3.4L4.4 -3",
    JobStatus.FAILED: "M-3.2 -3.2L3.2 3.2M3.2 -3.2L-3.2 3.2",
    JobStatus.CANCELED: "M-4 0H4",
}
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Draw = Callable[[float, float], list[str]]
"""Returns elements, given the position of their upper left corner."""


class PictureBlock(NamedTuple):
    """A part of the picture: its size, and how to draw it."""

    width: float
    height: float
    axis: float
    """How far below its upper edge lines reach and leave it."""
    draw: Draw


def text_of(text: str) -> str:
    """Return a text as content of an element or of an attribute."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def cut(text: str, room: float, letter: float) -> str:
    """Return as much of a text as has room, if its letters are so wide."""
    most = max(int(room / letter), 1)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def job_box(status: JobStatus, name: str, state: str, tooltip: str, width: float) -> PictureBlock:
    """Return the box of a job: an icon, its name, and its state below it. One that never runs is hollow."""
    hollow, fill = status is JobStatus.CANCELED, FILLS[status]
    ink = TEXT if hollow else "#fff"
    body = f'fill="none" stroke="{fill}" stroke-width="1.5" stroke-dasharray="4 3"' if hollow else f'fill="{fill}"'
    icon = "fill" if status is JobStatus.RUNNING else "stroke"
    pen = f'{icon}="{ink}"' + ("" if icon == "fill" else ' fill="none" stroke-width="2"')
    lines = [
        (
            cut(name, width - ICON_ROOM - 10, NAME_SIZE * MONO_WIDTH),
            -3.0,
            f'font-family="{MONO}" font-weight="600"',
            13,
        ),
        (cut(state, width - ICON_ROOM - 10, SMALL * PLAIN_WIDTH), 13.0, 'fill-opacity="0.9"' if not hollow else "", 11),
    ]

    def draw(x: float, y: float) -> list[str]:
        middle = y + BOX_HEIGHT / 2
        return [
            f"<g><title>{text_of(tooltip)}</title>",
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX_HEIGHT:g}" rx="{_ROUND:g}" {body}/>',
            f'<g transform="translate({x + 20:g} {middle:g})" stroke-linecap="round" stroke-linejoin="round">',
            f'<circle r="10" fill="{ink}" fill-opacity="0.18"/><path d="{_ICONS[status]}" {pen}/></g>',
            *(
                f'<text x="{x + ICON_ROOM:g}" y="{middle + down:g}" font-size="{size}" {style} fill="{ink}">'
                f"{text_of(text)}</text>"
                for text, down, style, size in lines
            ),
            "</g>",
        ]

    return PictureBlock(width, BOX_HEIGHT, BOX_HEIGHT / 2, draw)


def fold_box(texts: tuple[str, str], jobs: Mapping[JobStatus, int], width: float) -> PictureBlock:
    """Return the box of what is folded, with a bar of its states."""
    body = f'fill="{LINE}" fill-opacity="0.1" stroke="{LINE}" stroke-dasharray="2 3"'
    first, second = (cut(text, width - 24, SMALL * PLAIN_WIDTH) for text in texts)

    def draw(x: float, y: float) -> list[str]:
        return [
            f"<g><title>{text_of(' '.join(texts))}</title>",
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX_HEIGHT:g}" rx="{_ROUND:g}" {body}/>',
            label(first, x + 12, y + 17, bold=True),
            label(second, x + 12, y + 31),
            *bar(jobs, x + 12, y + 37, width - 24),
            "</g>",
        ]

    return PictureBlock(width, BOX_HEIGHT, BOX_HEIGHT / 2, draw)


def bar(jobs: Mapping[JobStatus, int], x: float, y: float, width: float, height: float = 4) -> list[str]:
    """Return a bar with a part for each state."""
    total = sum(jobs.values()) or 1
    parts: list[str] = []
    for status, count in in_order(jobs):
        part = width * count / total
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{part:.4g}" height="{height:g}" fill="{FILLS[status]}"/>')
        x += part
    return parts


def label(text: str, x: float, y: float, *, anchor: str = "start", bold: bool = False, color: str = TEXT) -> str:
    """Return a small text."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="11"{weight} fill="{color}">{text_of(text)}</text>'
    )


def frame(x: float, y: float, width: float, height: float, color: str) -> str:
    """Return the frame of a group."""
    box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="14"'
    return f'<rect {box} fill="{color}" fill-opacity="0.08" stroke="{color}" stroke-opacity="0.7" stroke-width="1.5"/>'


def arrow(path: str, *, dashed: bool = False) -> str:
    """Return an arrow along a path."""
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.8"{dashes} marker-end="url(#head)"/>'
