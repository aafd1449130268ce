"""Small pictures of boxes and arrows, as SVG that can be read on a light and on a dark page.

There is no background, and every colour keeps its distance from white and from black: a picture that followed the
system's theme by itself would be wrong on a page whose reader has chosen another one.
"""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

LINE: Final = "#84909c"
TEXT: Final = "#71808e"
FONT: Final = "font-family=\"-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif\""
MONO: Final = "font-family=\"ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace\""

_HEAD_SIZE: Final = 'markerWidth="7" markerHeight="7" orient="auto"'

Point = tuple[float, float]


class Box(NamedTuple):
    """A filled box around its centre; `text` is white on `fill`."""

    text: str
    x: float
    y: float
    fill: str
    width: float = 124
    height: float = 42

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height / 2

    def drawn(self) -> str:
        """As an element."""
        return (
            f'<rect x="{self.left:g}" y="{self.top:g}" width="{self.width:g}" height="{self.height:g}" rx="8" '
            f'fill="{self.fill}"/>'
            f'<text x="{self.x:g}" y="{self.y + 5:g}" text-anchor="middle" font-size="14" font-weight="600" '
            f'letter-spacing="0.4" fill="#fff">{escape(self.text)}</text>'
        )


def arrow(*points: Point, dashed: bool = False) -> str:
    """A line through points, with a head at the last one."""
    path = " ".join(f"{'M' if number == 0 else 'L'}{x:g} {y:g}" for number, (x, y) in enumerate(points))
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.8" stroke-linejoin="round"{dashes} '
        'marker-end="url(#head)"/>'
    )


def label(text: str, at: Point, anchor: str = "middle", *, turned: float = 0) -> str:
    """A few words beside an arrow."""
    x, y = at
    turn = f' transform="rotate({turned:g} {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{TEXT}" font-size="14"{turn}>{escape(text)}</text>'


def picture(title: str, size: tuple[int, int], elements: Sequence[str]) -> str:
    """The whole file."""
    width, height = size
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<path d="M0 0L10 5L0 10z" fill="{LINE}"/>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" {FONT}>',
            f"<title>{escape(title)}</title>",
            f'<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" {_HEAD_SIZE}>{head}</marker></defs>',
            *elements,
            "</svg>\n",
        ]
    )
