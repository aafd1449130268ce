"""What is left out of the picture of a large flow."""

from tests.domain.flow_graphs import graph_of_jobs, id_of
from windlass import FlowGraph, FlowNode, JobStatus
from windlass.domain.flow_folds import folded
from windlass.domain.flow_outline import Fold, OutlineLine, jobs_of, outline


def folds(graph: FlowGraph, most_members: int, most_steps: int = 50, focus: str | None = None) -> OutlineLine:
    (line,) = outline(graph)
    return folded(line, most_members, most_steps, None if focus is None else id_of(focus))


def names(line: OutlineLine) -> list[str]:
    return [node.id.bytes.strip(b"\0").decode() for node in jobs_of(line)]


def test_a_small_flow_is_shown_as_it_is():
    graph = graph_of_jobs("a", "b<a/G", "c<a/G", "d<G")
    assert folds(graph, 2) == outline(graph)[0]


def test_failed_and_running_members_of_a_large_group_are_shown():
    states = {7: "FAILED", 8: "RUNNING", 9: "PAUSED"} | dict.fromkeys(range(7), "SUCCEEDED")
    graph = graph_of_jobs(*(f"m{number}/G={states.get(number, 'PENDING')}" for number in range(20)), "z<G")
    (group, _) = line = folds(graph, 4)
    assert names(line) == ["m0", "m7", "m8", "m9", "z"]
    assert group.folded == Fold(16, {JobStatus.PENDING: 10, JobStatus.SUCCEEDED: 6})


def test_the_requested_job_is_shown():
    graph = graph_of_jobs(*(f"m{number}/G" for number in range(100)), "z<G")
    assert names(folds(graph, 2, focus="m70")) == ["m0", "m70", "z"]


def test_folded_members_count_all_of_their_jobs():
    members = [job for number in range(10) for job in (f"a{number}=SUCCEEDED", f"b{number}<a{number}/G")]
    (group, _) = folds(graph_of_jobs(*members, "z<G"), 3)
    assert group.folded == Fold(7, {JobStatus.PENDING: 7, JobStatus.SUCCEEDED: 7})


def test_a_long_line_keeps_its_ends_and_what_failed():
    states = {50: "FAILED"}
    chain = [f"a{number}<a{number - 1}={states.get(number, 'PENDING')}" for number in range(1, 100)]
    line = folds(graph_of_jobs("a0", *chain), 5, most_steps=6)
    assert names(line) == ["a0", "a1", "a2", "a50", "a99"]
    assert [step.content.count for step in line if isinstance(step.content, Fold)] == [47, 48]
    assert isinstance(line[-1].content, FlowNode)


def test_nested_folds_are_counted():
    inner = [f"m{number}<a5/G=SUCCEEDED" for number in range(30)]
    chain = [f"a{number}<a{number - 1}" for number in range(1, 6)]
    rest = ["b0<G", *(f"b{number}<b{number - 1}" for number in range(1, 6))]
    line = folds(graph_of_jobs("a0", *chain, *inner, *rest), 2, most_steps=4)
    counted = sum(sum(step.content.jobs.values()) for step in line if isinstance(step.content, Fold))
    assert counted + len(names(line)) == 42
