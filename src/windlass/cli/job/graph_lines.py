"""The picture of a flow for a terminal: lines of boxes and texts, each with its style. Pure.

```
✓ shop:fetch        …1c55f2  SUCCEEDED  12 ms
┢━ group  1/2 succeeded
┣━ ✓ shop:resize    …7a20b1  SUCCEEDED  1.2 s
┣━ ▶ shop:resize    …cc81d0  RUNNING  3.0 s
┡━
○ shop:publish      …f03b77  PENDING
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

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
    short_ids,
    title,
)
from windlass.cli.phrases import jobs
from windlass.cli.tables import STATUS_STYLES
from windlass.domain.flow_folds import folded
from windlass.domain.flow_graph import FlowGraph, FlowGroup, FlowNode
from windlass.domain.flow_outline import Fold, OutlineBranch, OutlineLine, OutlineStep, outline
from windlass.domain.states import JobStatus

SIGNS: Final = {
    JobStatus.PENDING: "○",
    JobStatus.RUNNING: "▶",
    JobStatus.WAITING: "◇",
    JobStatus.PAUSED: "‖",
    JobStatus.SUCCEEDED: "✓",
    JobStatus.FAILED: "✗",
    JobStatus.CANCELED: "⊘",
}
THIN: Final = "bright_black"
FOCUS: Final = " ◂"
MOST_MEMBERS: Final = 12
MOST_STEPS: Final = 60
_FEWEST_FOR_IDS: Final = 72
"""Columns from which on ids are shown."""
_LEAST_NAME: Final = 8
_DETAIL: Final = 16
_STATUS: Final = 9


class Span(NamedTuple):
    """A piece of a line, and its style."""

    text: str
    style: str = ""


DrawnLine = list[Span]


class _UnalignedRow(NamedTuple):
    """A line before its columns are aligned."""

    prefix: tuple[Span, ...]
    node: FlowNode | None = None
    texts: tuple[Span, ...] = ()
    """What stands there instead of a job."""
    fold: Fold | None = None


def draw(
    graph: FlowGraph, width: int, now: datetime, *, focus: UUID | None = None, most_members: int = MOST_MEMBERS
) -> list[DrawnLine]:
    """Return the picture of a flow, at most so many columns wide; `focus` is the requested job."""
    rows: list[_UnalignedRow] = []
    for line in outline(graph):
        rows += _line(folded(line, most_members, MOST_STEPS, focus), (), ())
    columns = _RowColumns(graph, rows, width, now, focus if len(graph.nodes) > 1 else None)
    return [*_heading(graph, width), [], *(line for row in rows for line in columns.aligned(row))]


def _heading(graph: FlowGraph, width: int) -> Iterator[DrawnLine]:
    yield [Span(_cut(title(graph), width), "bold")]
    spans = [Span(f"{jobs(len(graph.nodes))}: ")]
    for number, (status, count) in enumerate(in_order(graph.counts)):
        spans += [Span(", ")] if number else []
        spans.append(Span(counted({status: count}), STATUS_STYLES[status]))
    if sum(len(span.text) for span in spans) <= width:
        yield spans
    else:
        yield [Span(spans[0].text.rstrip())]
        yield from ([Span("  "), span] for span in spans[1::2])


# ------------------------------------------------------------------ the tree


def _line(line: OutlineLine, first: tuple[Span, ...], rest: tuple[Span, ...]) -> Iterator[_UnalignedRow]:
    """Yield the rows of a line; the first one begins with `first`, the others with `rest`."""
    for number, step in enumerate(line):
        before = line[number - 1] if number else None
        following = line[number + 1] if number + 1 < len(line) else None
        if before is not None:
            yield from _connection(before, step, rest)
        start = first if before is None else rest
        if isinstance(step.content, FlowNode):
            yield _UnalignedRow(start, step.content)
        elif isinstance(step.content, FlowGroup):
            yield from _group(step, step.content, start, rest, alone=before is None, following=following)
        else:
            yield _UnalignedRow((*start, Span("┆ ", THIN)), fold=step.content)
        for branch in step.branches:
            is_last = following is None and branch is step.branches[-1]
            yield from _branch(branch, rest, is_last=is_last)


def _connection(before: OutlineStep, step: OutlineStep, rest: tuple[Span, ...]) -> Iterator[_UnalignedRow]:
    after_group = isinstance(before.content, FlowGroup) and not before.branches
    folded_away = isinstance(before.content, Fold) or isinstance(step.content, Fold)
    to_group = isinstance(step.content, FlowGroup) and not before.branches
    label = LABELS[step.kind]
    if after_group or ((to_group or folded_away) and not label):
        return  # the bracket itself is the connection
    yield _UnalignedRow(rest, texts=(Span(f"│ {label}".rstrip(), THIN),))


def _group(
    step: OutlineStep,
    group: FlowGroup,
    start: tuple[Span, ...],
    rest: tuple[Span, ...],
    *,
    alone: bool,
    following: OutlineStep | None,
) -> Iterator[_UnalignedRow]:
    style = _group_style(group)
    opening, closing = ("┏━ " if alone else "┢━ "), ("┡━" if following or step.branches else "┗━")
    yield _UnalignedRow((*start, Span(opening, style)), texts=(Span("group  "), Span(group_summary(group), style)))
    for member in step.members:
        yield from _line(member, (*rest, Span("┣━ ", style)), (*rest, Span("┃  ", style)))
    if step.folded is not None:
        yield _UnalignedRow((*rest, Span("┃  ", style)), fold=step.folded)
    label = "" if following is None or step.branches else LABELS[following.kind]
    yield _UnalignedRow((*rest, Span(closing, style)), texts=(Span(f" {label}".rstrip(), THIN),))


def _group_style(group: FlowGroup) -> str:
    if group.failed:
        return STATUS_STYLES[JobStatus.FAILED]
    return STATUS_STYLES[JobStatus.SUCCEEDED if group.succeeded == group.total else JobStatus.PENDING]


def _branch(branch: OutlineBranch, rest: tuple[Span, ...], *, is_last: bool) -> Iterator[_UnalignedRow]:
    corner, side = ("└", " ") if is_last else ("├", "│")
    label, inside = branch_label(branch), (*rest, Span(f"{side}  ", THIN))
    if label:
        yield _UnalignedRow((*rest, Span(f"{corner}╌ {label}", THIN)))
        yield from _line(branch.line, inside, inside)
    else:
        yield from _line(branch.line, (*rest, Span(f"{corner}─ ", THIN)), inside)


# ------------------------------------------------------------------ the columns


class _RowColumns:
    """Where names, ids and states stand."""

    def __init__(
        self, graph: FlowGraph, rows: Sequence[_UnalignedRow], width: int, now: datetime, focus: UUID | None
    ) -> None:
        self._now, self._width, self._focus = now, width, focus
        self._ids = short_ids(graph) if width >= _FEWEST_FOR_IDS else {}
        shown = [row for row in rows if row.node is not None]
        behind = 2 + _STATUS + 2 + max((len(detail(row.node, now)) for row in shown if row.node), default=0)
        taken = (2 + max(map(len, self._ids.values())) if self._ids else 0) + min(behind, 4 + _STATUS + _DETAIL)
        room = width - taken
        full = [_length(row.prefix) + 2 + len(self._name(row.node, short=False)) for row in shown if row.node]
        self._short = max(full, default=0) > room
        names = [_length(row.prefix) + 2 + len(self._name(row.node, short=self._short)) for row in shown if row.node]
        self._names = min(max(names, default=0), max(room, _LEAST_NAME))

    def _name(self, node: FlowNode, *, short: bool) -> str:
        name = name_of(node) if short else clean(node.target)
        return name + (FOCUS if node.id == self._focus else "")

    def aligned(self, row: _UnalignedRow) -> Iterator[DrawnLine]:
        """Yield a row as a line, or as two if it is long."""
        if row.node is not None:
            yield _fitted([*row.prefix, *self._job(row.node, _length(row.prefix))], self._width)
        elif row.fold is not None:
            for text in _lines_of(fold_text(row.fold), self._width - _length(row.prefix)):
                yield _fitted([*row.prefix, Span(text, THIN)], self._width)
        else:
            yield _fitted([*row.prefix, *row.texts], self._width)

    def _job(self, node: FlowNode, prefix: int) -> DrawnLine:
        style, name = STATUS_STYLES[node.status], self._name(node, short=self._short)
        room = max(self._names - prefix - 2, min(_LEAST_NAME, len(name)))
        spans = [Span(f"{SIGNS[node.status]} ", style), Span(_cut(name, room).ljust(room), self._name_style(node))]
        if self._ids:
            spans.append(Span(f"  {self._ids[node.id]}", THIN))
        spans += [Span("  "), Span(node.status.value, style)]
        text = detail(node, self._now)
        if text:
            spans += [Span(" " * (_STATUS - len(node.status.value) + 2)), Span(text, _detail_style(node))]
        return spans

    def _name_style(self, node: FlowNode) -> str:
        if node.id == self._focus:
            return "bold"
        return THIN if node.status is JobStatus.CANCELED else ""


def _detail_style(node: FlowNode) -> str:
    return "red" if node.status is JobStatus.FAILED else THIN


def _length(spans: Sequence[Span]) -> int:
    return sum(len(span.text) for span in spans)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def _lines_of(text: str, width: int) -> list[str]:
    head, _, counts = text.partition(": ")
    return [text] if len(text) <= width else [f"{head}:", f"  {counts}"]


def _fitted(spans: Sequence[Span], width: int) -> DrawnLine:
    """Return the spans that fit into a line; the last one of them is cut."""
    fitted: DrawnLine = []
    for span in spans:
        room = width - _length(fitted)
        if room <= 0:
            break
        fitted.append(Span(_cut(span.text, room), span.style))
    return fitted
