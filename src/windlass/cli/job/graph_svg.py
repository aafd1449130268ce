"""The picture of a flow as SVG, from left to right: jobs are boxes, groups are frames around their members. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from windlass.cli import phrases
from windlass.cli.job.graph_texts import (
    LABELS,
    branch_label,
    clean,
    counted,
    detail,
    fold_text,
    group_summary,
    in_order,
    name_of,
    summary,
    title,
)
from windlass.cli.job.svg_shapes import (
    FILLS,
    FONT,
    ICON_ROOM,
    LINE,
    MONO,
    MONO_WIDTH,
    NAME_SIZE,
    PLAIN_WIDTH,
    SMALL,
    TEXT,
    PictureBlock,
    arrow,
    bar,
    fold_box,
    frame,
    job_box,
    label,
    text_of,
)
from windlass.domain.flow_folds import folded
from windlass.domain.flow_graph import EdgeKind, FlowGraph, FlowGroup, FlowNode, counts_of
from windlass.domain.flow_outline import Fold, OutlineBranch, OutlineLine, OutlineStep, jobs_of, outline
from windlass.domain.states import JobStatus

MOST_MEMBERS: Final = 8
MOST_STEPS: Final = 24
MARGIN: Final = 24.0
HEADING: Final = 62.0
ACROSS: Final = 44.0
"""Between two steps of a line."""
LABELLED: Final = 92.0
"""The same, with a label on the arrow."""
DOWN: Final = 12.0
PADDING: Final = 16.0
HEADER: Final = 38.0
LEAST_WIDTH: Final = 420.0
_NARROWEST: Final = 136.0
_WIDEST: Final = 260.0


def draw(graph: FlowGraph, now: datetime, *, focus: UUID | None = None) -> str:
    """Return the picture of a flow as the text of an SVG file; `focus` is a job that is not folded."""
    lines = [folded(line, MOST_MEMBERS, MOST_STEPS, focus) for line in outline(graph)]
    layout = _Layout(graph, lines, now)
    blocks = [layout.line(line) for line in lines]
    width = max([LEAST_WIDTH, *(block.width for block in blocks)]) + 2 * MARGIN
    elements: list[str] = []
    y = MARGIN + HEADING
    for block in blocks:
        elements += block.draw(MARGIN, y)
        y += block.height + MARGIN
    return _document(graph, width, y, elements)


def _document(graph: FlowGraph, width: float, height: float, elements: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = f'<path d="M0 0L10 5L0 10z" fill="{LINE}"/>'
    marker = (
        f'<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">{head}'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">',
            f"<title>{text_of(f'{title(graph)}, {summary(graph)}')}</title>",
            f"<defs>{marker}</marker></defs>",
            *_heading(graph),
            *elements,
            "</svg>\n",
        ]
    )


def _heading(graph: FlowGraph) -> list[str]:
    kind, _, rest = title(graph).partition(" ")
    named = f'{kind.capitalize()} <tspan font-family="{MONO}" font-weight="400" font-size="13">{text_of(rest)}</tspan>'
    texts = [f'<text x="{MARGIN:g}" y="{MARGIN + 12:g}" font-size="16" font-weight="600" fill="{TEXT}">{named}</text>']
    x, y, whole = MARGIN, MARGIN + 36, phrases.jobs(len(graph.nodes))
    texts.append(f'<text x="{x:g}" y="{y:g}" font-size="12" font-weight="600" fill="{TEXT}">{whole}</text>')
    x += len(whole) * 12 * PLAIN_WIDTH + 18
    for status, count in in_order(graph.counts):
        text = counted({status: count})
        texts.append(f'<circle cx="{x + 5:g}" cy="{y - 4:g}" r="5" fill="{FILLS[status]}"/>')
        texts.append(f'<text x="{x + 15:g}" y="{y:g}" font-size="12" fill="{TEXT}">{text_of(text)}</text>')
        x += 15 + len(text) * 12 * PLAIN_WIDTH + 14
    return texts


class _Layout:
    """Makes blocks of the parts of an outline."""

    def __init__(self, graph: FlowGraph, lines: Sequence[OutlineLine], now: datetime) -> None:
        self._now = now
        self._nodes = {node.id: node for node in graph.nodes}
        shown = [node for line in lines for node in jobs_of(line)]
        alike = {name_of(node): clean(node.target) for node in shown}
        self._short = len(alike) == len({node.target for node in shown})
        wanted = [
            max(len(self._name(node)) * NAME_SIZE * MONO_WIDTH, len(self._state(node)) * SMALL * PLAIN_WIDTH)
            for node in shown
        ]
        self._width = min(max(_NARROWEST, ICON_ROOM + 14 + max(wanted, default=0)), _WIDEST)

    def _name(self, node: FlowNode) -> str:
        return name_of(node) if self._short else clean(node.target)

    def _state(self, node: FlowNode) -> str:
        """Return a job's state; of a failure only the class, since its box is small."""
        details = detail(node, self._now).rpartition(": ")[2]
        return " · ".join(part for part in (node.status.value.lower(), details) if part)

    def _step(self, step: OutlineStep) -> PictureBlock:
        if isinstance(step.content, FlowNode):
            node = step.content
            tooltip = f"{clean(node.target)}\n{node.id}\n{node.status.value} {detail(node, self._now)}".rstrip()
            return job_box(node.status, self._name(node), self._state(node), tooltip, self._width)
        if isinstance(step.content, FlowGroup):
            return self._group(step, step.content)
        return self._fold(step.content)

    def _fold(self, fold: Fold) -> PictureBlock:
        more, _, counts = fold_text(fold).partition(": ")
        wanted = max(len(more), len(counts)) * SMALL * PLAIN_WIDTH + 28
        return fold_box((more, counts), fold.jobs, max(self._width, wanted))

    def _group(self, step: OutlineStep, group: FlowGroup) -> PictureBlock:
        members = [self.line(member) for member in step.members]
        if step.folded is not None:
            members.append(self._fold(step.folded))
        text = group_summary(group)
        inner = max([*(block.width for block in members), len(text) * SMALL * PLAIN_WIDTH + 8])
        width = inner + 2 * PADDING
        height = HEADER + sum(block.height for block in members) + DOWN * (len(members) - 1) + PADDING
        jobs = counts_of([self._nodes[member] for member in group.members])
        color = _group_color(group)

        def draw(x: float, y: float) -> list[str]:
            elements = [
                frame(x, y, width, height, color),
                label(text, x + PADDING, y + 19, bold=True),
                *bar(jobs, x + PADDING, y + 25, inner, 3),
            ]
            down = y + HEADER
            for block in members:
                elements += block.draw(x + PADDING, down)
                down += block.height + DOWN
            return elements

        return PictureBlock(width, height, height / 2, draw)

    def line(self, line: OutlineLine) -> PictureBlock:
        """Return the steps of a line side by side, with their branches below."""
        steps = [self._step(step) for step in line]
        forks = [branch for branch in line[-1].branches if branch.kind == "then"]
        kinds: list[EdgeKind] = [step.kind for step in line[1:]]
        if forks:
            steps.append(self._stack([self.line(branch.line) for branch in forks]))
            kinds.append("then")
        starts = [0.0]
        for block, kind in zip(steps, kinds, strict=False):
            starts.append(starts[-1] + block.width + (LABELLED if LABELS[kind] else ACROSS))
        axis = max(block.axis for block in steps)
        row = _StepRow(steps, starts, axis, kinds, fork=bool(forks))
        branches = _Branches(row, [(number, branch) for number, step in enumerate(line) for branch in step.branches])
        positioned = branches.positioned(self)

        def draw(x: float, y: float) -> list[str]:
            elements = row.draw(x, y)
            for branch in positioned:
                elements += branch(x, y)
            return elements

        return PictureBlock(max(row.width, branches.right), max(row.height, branches.bottom), axis, draw)

    def _stack(self, blocks: Sequence[PictureBlock]) -> PictureBlock:
        """Return blocks one below the other, each with an arrow from the step before."""
        height = sum(block.height for block in blocks) + DOWN * (len(blocks) - 1)

        def draw(x: float, y: float) -> list[str]:
            elements: list[str] = []
            middle, down = y + height / 2, y
            for block in blocks:
                end, half = down + block.axis, x - ACROSS / 2
                elements.append(arrow(f"M{x - ACROSS:g} {middle:g}C{half:g} {middle:g} {half:g} {end:g} {x:g} {end:g}"))
                elements += block.draw(x, down)
                down += block.height + DOWN
            return elements

        return PictureBlock(max(block.width for block in blocks), height, height / 2, draw)


def _group_color(group: FlowGroup) -> str:
    if group.failed:
        return FILLS[JobStatus.FAILED]
    return FILLS[JobStatus.SUCCEEDED] if group.succeeded == group.total else LINE


class _StepRow:
    """The steps of a line."""

    def __init__(
        self,
        steps: Sequence[PictureBlock],
        starts: Sequence[float],
        axis: float,
        kinds: Sequence[EdgeKind],
        *,
        fork: bool,
    ) -> None:
        self.steps, self.starts, self.axis = steps, starts, axis
        self._kinds, self._fork = kinds, fork
        self.width = starts[len(steps) - 1] + steps[-1].width
        self.height = axis + max(block.height - block.axis for block in steps)

    def draw(self, x: float, y: float) -> list[str]:
        """Return the steps, and the arrows between them."""
        elements: list[str] = []
        for number, (block, start) in enumerate(zip(self.steps, self.starts, strict=False)):
            if number and not (self._fork and number == len(self.steps) - 1):
                before = self.starts[number - 1] + self.steps[number - 1].width
                elements.append(arrow(f"M{x + before:g} {y + self.axis:g}H{x + start:g}"))
                text = LABELS[self._kinds[number - 1]]
                if text:
                    elements.append(label(text, x + (before + start) / 2 - 3, y + self.axis - 7, anchor="middle"))
            elements += block.draw(x + start, y + self.axis - block.axis)
        return elements


class _Branches:
    """The branches below a row. Those of earlier steps are further down, so that no line crosses another branch."""

    def __init__(self, row: _StepRow, branches: Sequence[tuple[int, OutlineBranch]]) -> None:
        self._row = row
        self._branches = [(number, branch) for number, branch in branches if branch.kind != "then"]
        self.right = self.bottom = 0.0

    def positioned(self, layout: _Layout) -> list[_Branch]:
        """Return the branches with their positions, and measure how much room they take."""
        found: list[_Branch] = []
        down = self._row.height + DOWN
        for number, branch in reversed(self._branches):
            block, step = layout.line(branch.line), self._row.steps[number]
            stem = self._row.starts[number] + step.width / 2
            text = branch_label(branch)
            left = stem + max(LABELLED, len(text) * SMALL * PLAIN_WIDTH + 28)
            leaves = self._row.axis - step.axis + step.height
            found.append(_Branch(block, text, stem, leaves, left, down))
            self.right, self.bottom = max(self.right, left + block.width), down + block.height
            down = self.bottom + DOWN
        return found


class _Branch:
    """A branch and its position, relative to its row."""

    def __init__(self, block: PictureBlock, text: str, stem: float, leaves: float, left: float, top: float) -> None:
        self._block, self._text = block, text
        self._stem, self._leaves, self._left, self._top = stem, leaves, left, top

    def __call__(self, x: float, y: float) -> list[str]:
        stem, end = x + self._stem, y + self._top + self._block.axis
        path = f"M{stem:g} {y + self._leaves:g}V{end - 10:g}Q{stem:g} {end:g} {stem + 10:g} {end:g}H{x + self._left:g}"
        return [
            arrow(path, dashed=True),
            label(self._text, stem + 14, end - 7),
            *self._block.draw(x + self._left, y + self._top),
        ]
