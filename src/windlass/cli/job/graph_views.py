"""How a flow is shown: drawn and redrawn at a terminal, as lines for pipes, as objects for programs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from uuid import UUID

from windlass.cli import phrases
from windlass.cli.job.graph_lines import MOST_MEMBERS, DrawnLine, draw
from windlass.cli.output import console, drawn, note, write_json
from windlass.cli.tables import Cell, Column, table
from windlass.domain.flow_graph import FlowEdge, FlowGraph, FlowNode
from windlass.domain.states import JobStatus
from windlass.spi import Clock

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

COLUMNS: Final = (
    Column("id"),
    Column("status"),
    Column("target"),
    Column("follows"),
    Column("parent"),
    Column("group"),
    Column("ran"),
    Column("reason"),
)
FEWER_MEMBERS: Final = (MOST_MEMBERS, 6, 3, 1)
"""How many members of a group are shown where there is less and less room."""


class GraphView(Protocol):
    """Base class of views of a flow."""

    def __enter__(self) -> Self:
        """Begin to follow it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the live display."""

    def show(self, graph: FlowGraph) -> None:
        """Show the flow as it is now, and not the last time."""

    def over(self, graph: FlowGraph) -> None:
        """Show the flow as it is, after the end of the live display."""


def graph_view(clock: Clock, focus: UUID) -> GraphView:
    """Return the view for standard output; `focus` is the requested job."""
    return DrawnGraphView(clock, focus) if drawn() else PlainGraphView()


class PlainGraphView:
    """A line per job, its columns separated by tabs; a job that has changed is written again."""

    def __init__(self) -> None:
        self._shown: dict[UUID, JobStatus] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, graph: FlowGraph) -> None:
        """Write the jobs whose state has changed; at first all of them."""
        changed = [node for node in graph.nodes if self._shown.get(node.id) is not node.status]
        self._shown = {node.id: node.status for node in graph.nodes}
        self.write(graph, changed)

    def over(self, graph: FlowGraph) -> None:
        """Do the same."""
        self.show(graph)

    def write(self, graph: FlowGraph, nodes: list[FlowNode]) -> None:
        """Write some jobs of the flow."""
        edges = {edge.child_id: edge for edge in graph.edges}
        table(COLUMNS, [_row(node, edges.get(node.id)) for node in nodes])


def _row(node: FlowNode, edge: FlowEdge | None) -> list[Cell]:
    return [
        Cell(str(node.id)),
        Cell(node.status.value),
        Cell(node.target),
        Cell("" if edge is None else f"{edge.kind} {edge.label}".rstrip()),
        Cell("" if edge is None else str(edge.parent_id)),
        Cell("" if node.group_id is None else str(node.group_id)),
        Cell("" if node.run_ms is None else phrases.span(node.run_ms)),
        Cell(node.reason or ""),
    ]


class JsonGraphView(PlainGraphView):
    """An object per line: `{"kind": "graph" | "node", …}`."""

    def show(self, graph: FlowGraph) -> None:
        """Write the graph at first, then the jobs that have changed."""
        if self._shown:
            super().show(graph)
        else:
            self._shown = {node.id: node.status for node in graph.nodes}
            write_json({"kind": "graph", "graph": graph}, indent=0)

    def write(self, graph: FlowGraph, nodes: list[FlowNode]) -> None:
        """Write some jobs of the flow."""
        del graph
        for node in nodes:
            write_json({"kind": "node", "node": node}, indent=0)


class DrawnGraphView:
    """The picture, redrawn in its place."""

    def __init__(self, clock: Clock, focus: UUID) -> None:
        self._clock, self._focus = clock, focus
        self._console = console()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, graph: FlowGraph) -> None:
        """Redraw it, with fewer members of groups if it is higher than the screen."""
        assert self._live is not None, "shown inside of the with block only"
        lines: list[DrawnLine] = []
        for most in FEWER_MEMBERS:
            lines = self._drawing(graph, most)
            if len(lines) < self._console.height:
                break
        self._live.start()
        self._live.update(_text(lines), refresh=True)

    def over(self, graph: FlowGraph) -> None:
        """Draw it, and name the command that shows more of what failed."""
        self._console.print(_text(self._drawing(graph, MOST_MEMBERS)), soft_wrap=True)
        failed = next((node for node in graph.nodes if node.status is JobStatus.FAILED), None)
        if failed is not None:
            note(f"why it failed: windlass job show {failed.id}")

    def _drawing(self, graph: FlowGraph, most_members: int) -> list[DrawnLine]:
        now = self._clock.now()
        return draw(graph, self._console.width, now, focus=self._focus, most_members=most_members)


def _text(lines: list[DrawnLine]) -> Text:
    from rich.text import Text

    parts: list[Any] = []
    for number, line in enumerate(lines):
        parts += ["\n"] if number else []
        parts += [(span.text, span.style) for span in line]
    return Text.assemble(*parts, no_wrap=True, overflow="crop")
