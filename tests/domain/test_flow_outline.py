"""The outline of a flow: where its groups begin and end, found from what follows what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.flow_graphs import graph_of_jobs
from windlass import FlowGroup, FlowNode
from windlass.domain.flow_outline import OutlineLine, OutlineStep, jobs_of, outline


def text(line: OutlineLine) -> str:
    """A line as text: `a [b | c d] {failure: e} f`."""
    return " ".join(step_text(step) for step in line)


def step_text(step: OutlineStep) -> str:
    if isinstance(step.content, FlowNode):
        own = step.content.id.bytes.strip(b"\0").decode()
    else:
        assert isinstance(step.content, FlowGroup)
        own = f"[{' | '.join(text(member) for member in step.members)}]"
    branches = "".join(f" {{{branch.kind}: {text(branch.line)}}}" for branch in step.branches)
    return f"{'always:' if step.kind == 'always' else ''}{own}{branches}"


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param("a", "a", id="a job alone"),
        pytest.param("a b<a c<b", "a b c", id="a chain"),
        pytest.param("a b<a/G c<a/G d<G", "a [b | c] d", id="a fan-out and its join"),
        pytest.param("a/G b/G c<G d<c", "[a | b] c d", id="a flow that begins with a group"),
        pytest.param("a b<a/G c/G d<G", "[a b | c] d", id="a member that is a chain"),
        pytest.param("x a<x b<a/G c<x/G d<G", "x [a b | c] d", id="a chain as a member, behind a job"),
        pytest.param("a/G b/G c<G/H d<G/H e<H", "[a | b] [c | d] e", id="a group behind a group"),
        pytest.param("a/G b/G j<G/H c/H k<H", "[[a | b] j | c] k", id="a nested group with a step of its own"),
        pytest.param("x a<x/G b<x/G j<G/H c<x/H k<H", "x [[a | b] j | c] k", id="the same behind a job"),
        pytest.param("a/G b/G f!G c<G d<c", "[a | b] {failure: f} c d", id="a branch for failure"),
        pytest.param("a/G b/G f!G g<f", "[a | b] {failure: f g}", id="nothing but a branch for failure"),
        pytest.param("a/G b/G c*G d<c", "[a | b] always:c d", id="a step that always follows"),
        pytest.param("a b<a/G c<G", "a [b] c", id="a group of one"),
        pytest.param("x v<x a<v/G b<v/G c<x/G d<G", "x [v {then: a} {then: b} | c] d", id="a flattened nested group"),
        pytest.param("b<gone c<b", "b c", id="a parent that is not there any more"),
    ],
)
def test_lines_of_steps(jobs: str, expected: str):
    (line,) = outline(graph_of_jobs(*jobs.split()))
    assert text(line) == expected


@given(st.integers(1, 400), st.integers(1, 40))
def test_no_job_is_lost(length: int, members: int):
    """Long chains and large groups, without deep recursion."""
    chain = ["a0", *(f"a{number}<a{number - 1}" for number in range(1, length))]
    group = [f"m{number}<a{length - 1}/G" for number in range(members)]
    graph = graph_of_jobs(*chain, *group, "z<G")
    (line,) = outline(graph)
    assert [node.id for node in jobs_of(line)] == [node.id for node in graph.nodes]


def test_a_chain_of_thousands_has_an_outline():
    graph = graph_of_jobs("a0", *(f"a{number}<a{number - 1}" for number in range(1, 5000)))
    (line,) = outline(graph)
    assert len(line) == 5000
