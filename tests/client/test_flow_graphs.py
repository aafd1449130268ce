"""`handle.graph()`, `app.graph(id)`: a flow as a whole, from any of its jobs."""

from uuid import uuid4

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, until
from windlass import RESULT, FlowGraph, JobNotFoundError, JobStatus, NotAuthorizedError, Windlass, group


def functions(graph: FlowGraph) -> list[tuple[str, str]]:
    return [(node.target.rpartition(":")[2], node.status.value) for node in graph.nodes]


def links(graph: FlowGraph) -> list[tuple[int, int, str]]:
    """Edges by the numbers of jobs; a group's number is negative."""
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    numbers |= {found.id: -1 - number for number, found in enumerate(graph.groups)}
    return [(numbers[edge.parent_id], numbers[edge.child_id], edge.kind) for edge in graph.edges]


def test_a_chain_has_an_edge_for_each_step_and_every_job_gives_the_same_graph(app: Windlass):
    """J8.1."""
    note = app.job(jobs.note)
    handle = note.bind("a").then(note.bind(RESULT)).then(note.bind("c")).enqueue()
    graph = handle.graph()
    assert functions(graph) == [("note", "PENDING")] * 3
    assert links(graph) == [(0, 1, "then"), (1, 2, "then")]
    assert (graph.flow_id, graph.groups, graph.counts) == (handle.id, (), {JobStatus.PENDING: 3})
    assert [node.due_at is None for node in graph.nodes] == [False, True, True]
    assert [app.graph(node.id) for node in graph.nodes] == [graph] * 3


def test_a_failed_step_and_what_it_canceled(app: Windlass):
    """J8.1: the reasons are in the graph."""
    fail, note = app.job(max_retries=0)(jobs.fail), app.job(jobs.note)
    handle = note.bind("a").then(fail.bind("broken")).then(note.bind("c")).enqueue()
    with app.worker():
        until(lambda: handle.graph().ended)
    first, failed, last = handle.graph().nodes
    assert (first.status, first.reason, first.run_ms is not None) == (JobStatus.SUCCEEDED, None, True)
    assert (failed.status, failed.reason, failed.error_class) == (JobStatus.FAILED, "retry_exhausted", "ValueError")
    assert (last.status, last.reason, last.run_ms) == (JobStatus.CANCELED, "upstream_failed", None)
    assert not handle.graph().succeeded


async def test_a_group_counts_its_members(app: Windlass, gate: Gate):
    """J8.3: edges from a group have its id as their parent."""
    note, hold = app.job(jobs.anote), app.job(jobs.ahold)
    members = group(note.bind("b"), hold.bind(gate.name), note.bind("c").then(note.bind("d")))
    handle = await note.bind("a").then(members.then_on_failure(note.bind("f")).then(note.bind("e"))).aenqueue()
    async with app.worker():
        while (graph := await handle.agraph()).counts.get(JobStatus.SUCCEEDED, 0) < 4 or not gate.entered.is_set():
            pass
        (found,) = graph.groups
        assert (found.total, found.succeeded, found.failed) == (3, 2, 0)
        assert found.members == tuple(node.id for node in graph.nodes if node.group_id == found.id)
        assert links(graph) == [
            *((0, 1, "then"), (0, 2, "then"), (0, 3, "then"), (3, 4, "then")),
            *((-1, 5, "failure"), (-1, 6, "then")),
        ]
        running = graph.nodes[2]
        assert (running.status, running.picked_at is not None) == (JobStatus.RUNNING, True)
        assert await app.agraph(found.members[-1]) == graph
        gate.open()
        while not (graph := await handle.agraph()).ended:
            pass
    assert graph.succeeded, "a branch for failure that was not chosen is no failure"
    assert [node.reason for node in graph.nodes if node.status is JobStatus.CANCELED] == ["not_chosen"]


def test_the_graph_of_a_group_with_then_always(app: Windlass):
    """J8.3."""
    fail, note = app.job(max_retries=0)(jobs.fail), app.job(jobs.note)
    flow = group(fail.bind("x"), note.bind("b")).then_always(note.bind("c"))
    handle = flow.enqueue()
    with app.worker():
        handle.join(timeout=LONG)
    graph = handle.graph()
    assert links(graph) == [(-1, 2, "always")]
    assert (graph.groups[0].succeeded, graph.groups[0].failed) == (1, 1)
    assert graph.flow_id == graph.nodes[0].id != handle.id, "the handle is that of the step behind the group"
    app.pause(graph.nodes[0].id)
    assert app.graph(handle.id).groups[0].failed == 1, "a paused dead letter has ended"


def test_a_job_outside_of_flows_is_alone_in_its_graph(app: Windlass):
    handle = app.job(jobs.note).enqueue("a")
    graph = handle.graph()
    assert (functions(graph), graph.edges, graph.groups) == ([("note", "PENDING")], (), ())
    assert graph.flow_id == graph.nodes[0].id == handle.id


def test_an_unknown_job_has_no_graph(app: Windlass):
    with pytest.raises(JobNotFoundError):
        app.graph(uuid4())


def test_the_authorizer_is_called_for_a_graph(apps: Apps):
    """J6.5."""
    calls: list[tuple[str, str]] = []

    class Watchful:
        def may(self, principal: object, action: str, job: object = None) -> bool:
            calls.append((action, str(getattr(job, "id", None))))
            return principal is not None or action == "enqueue"

    app = apps(authorizer=Watchful())
    handle = app.job(jobs.note).bind("a").then(app.job(jobs.add).bind(1, 2)).enqueue()
    with app.acting_as("ann"):
        assert len(handle.graph().nodes) == 2
    assert calls[-1] == ("graph", str(handle.id))
    with pytest.raises(NotAuthorizedError):
        handle.graph()
