"""Graphs of flows, written by hand: `graph_of_jobs("a", "b<a", "c<a/G", "d<G")`."""

import re
from uuid import NAMESPACE_OID, UUID, uuid5

from windlass import FlowEdge, FlowGraph, FlowGroup, FlowNode, JobStatus
from windlass.domain.flow_graph import EdgeKind

_JOB = re.compile(r"(?P<name>\w+)(?:(?P<kind>[<!*+?])(?P<parent>\w+))?(?:/(?P<group>[A-Z]\w*))?(?:=(?P<status>\w+))?")
_KINDS: dict[str, EdgeKind] = {"<": "then", "!": "failure", "*": "always", "+": "success", "?": "when"}


def id_of(name: str) -> UUID:
    """The id of a job or group: the letters of its name, if they fit."""
    return UUID(bytes=name.encode().rjust(16, b"\0")) if len(name) <= 16 else uuid5(NAMESPACE_OID, name)


def graph_of_jobs(*jobs: str) -> FlowGraph:
    """The graph of jobs, each as `name<parent/GROUP=STATUS`: `<` follows success, `!` failure, `*` any end.

    Branches: `+` follows success, `?` a predicate, whose name is `is_` and that of the job. Groups have names in
    capitals. A job is called `shop:` and its name without digits.
    """
    parts = [found.groupdict() for job in jobs if (found := _JOB.fullmatch(job))]
    assert len(parts) == len(jobs), jobs
    nodes = tuple(
        FlowNode(
            id=id_of(part["name"]),
            target=f"shop:{part['name'].rstrip('0123456789')}",
            status=JobStatus(part["status"] or "PENDING"),
            group_id=id_of(part["group"]) if part["group"] else None,
        )
        for part in parts
    )
    edges = tuple(
        FlowEdge(
            parent_id=id_of(part["parent"]), child_id=id_of(part["name"]), kind=_KINDS[part["kind"]], label=_label(part)
        )
        for part in parts
        if part["parent"]
    )
    names = dict.fromkeys(part["group"] for part in parts if part["group"])
    return FlowGraph(flow_id=nodes[0].id, nodes=nodes, edges=edges, groups=tuple(_group(name, nodes) for name in names))


def _label(part: dict[str, str]) -> str:
    return f"is_{part['name']}" if part["kind"] == "?" else ""


def _group(name: str, nodes: tuple[FlowNode, ...]) -> FlowGroup:
    members = [node for node in nodes if node.group_id == id_of(name)]
    succeeded = sum(node.status is JobStatus.SUCCEEDED for node in members)
    failed = sum(node.status in {JobStatus.FAILED, JobStatus.CANCELED} for node in members)
    ids = tuple(node.id for node in members)
    return FlowGroup(id=id_of(name), total=len(members), succeeded=succeeded, failed=failed, members=ids)
