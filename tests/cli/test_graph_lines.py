"""The picture of a flow in a terminal, line by line."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.domain.flow_graphs import graph_of_jobs, id_of
from windlass import FlowGraph, JobStatus
from windlass.cli.job.graph_lines import draw

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def picture(graph: FlowGraph, width: int = 60, **options) -> list[str]:
    """The lines below the heading, without styles."""
    lines = ["".join(span.text for span in line).rstrip() for line in draw(graph, width, NOW, **options)]
    return lines[lines.index("") + 1 :]


CHAIN = ("a=SUCCEEDED b<a=FAILED c<b=CANCELED", """
✓ shop:a  SUCCEEDED
│
✗ shop:b  FAILED
│
⊘ shop:c  CANCELED
""")  # fmt: skip
JOIN = ("a=SUCCEEDED b1<a/G=SUCCEEDED b2<a/G=RUNNING c<G d<c", """
✓ shop:a     SUCCEEDED
┢━ group  1/2 succeeded
┣━ ✓ shop:b  SUCCEEDED
┣━ ▶ shop:b  RUNNING
┡━
○ shop:c     PENDING
│
○ shop:d     PENDING
""")  # fmt: skip
FAILURE = ("a/G=FAILED b/G=PAUSED f!G g<f c<G=CANCELED", """
┏━ group  0/2 succeeded, 1 failed
┣━ ✗ shop:a  FAILED
┣━ ‖ shop:b  PAUSED
┡━
├╌ on failure
│  ○ shop:f  PENDING
│  │
│  ○ shop:g  PENDING
│
⊘ shop:c     CANCELED
""")  # fmt: skip
LAST = ("a/G=WAITING b/G f!G", """
┏━ group  0/2 succeeded
┣━ ◇ shop:a  WAITING
┣━ ○ shop:b  PENDING
┡━
└╌ on failure
   ○ shop:f  PENDING
""")  # fmt: skip
BRANCHES = ("a=SUCCEEDED b?a=CANCELED c<b=CANCELED d+a=SUCCEEDED e!a=CANCELED z<a=RUNNING", """
✓ shop:a     SUCCEEDED
├╌ is_b
│  ⊘ shop:b  CANCELED
│  │
│  ⊘ shop:c  CANCELED
├╌ on success
│  ✓ shop:d  SUCCEEDED
├╌ on failure
│  ⊘ shop:e  CANCELED
│
▶ shop:z     RUNNING
""")  # fmt: skip
NESTED = ("a/G b1 b2<b1/G j<G/H c/H k*H", """
┏━ group  0/2 succeeded
┣━ ┏━ group  0/2 succeeded
┃  ┣━ ○ shop:a  PENDING
┃  ┣━ ○ shop:b  PENDING
┃  ┃  │
┃  ┃  ○ shop:b  PENDING
┃  ┡━
┃  ○ shop:j     PENDING
┣━ ○ shop:c     PENDING
┡━ always
○ shop:k        PENDING
""")  # fmt: skip
FLATTENED = ("x v<x a<v/G b<v/G c<x/G d<G", """
○ shop:x        PENDING
┢━ group  0/3 succeeded
┣━ ○ shop:v     PENDING
┃  ├─ ○ shop:a  PENDING
┃  └─ ○ shop:b  PENDING
┣━ ○ shop:c     PENDING
┡━
○ shop:d        PENDING
""")  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [CHAIN, JOIN, FAILURE, LAST, BRANCHES, NESTED, FLATTENED],
    ids=["a chain", "a join", "a failure", "a failure at the end", "branches", "nested groups", "a flattened group"],
)
def test_lines_and_brackets(jobs: str, expected: str):
    """J8.1, J8.2, J8.3."""
    assert picture(graph_of_jobs(*jobs.split())) == expected.strip("\n").split("\n")


def test_the_heading_says_which_flow_and_how_far():
    heading = ["".join(span.text for span in line) for line in draw(graph_of_jobs("a=SUCCEEDED", "b<a"), 80, NOW)][:2]
    assert heading == [f"flow {id_of('a')}", "2 jobs: 1 succeeded, 1 pending"]
    alone = draw(graph_of_jobs("a"), 80, NOW)[0]
    assert "".join(span.text for span in alone) == f"job {id_of('a')}, in no flow"


@pytest.mark.parametrize("width", [80, 60, 44, 20])
def test_no_line_is_wider_than_the_terminal(width: int):
    graph = graph_of_jobs(
        *("first=SUCCEEDED", *(f"resize_the_picture{number}<first/G=SUCCEEDED" for number in range(3000))),
        *(f"render{number}<first/G" for number in range(1500)),
        "publish_the_whole_album_at_once<G",
    )
    assert max(sum(len(span.text) for span in line) for line in draw(graph, width, NOW)) <= width


def test_a_large_group_is_folded():
    """J8.3: thousands of members take no more lines than a dozen."""
    graph = graph_of_jobs(*(f"a{n}/G=SUCCEEDED" for n in range(4100)), *(f"b{n}/G" for n in range(900)), "z<G")
    lines = picture(graph, 80)
    assert lines[0] == "┏━ group  4,100/5,000 succeeded"
    assert lines[13] == "┃  … and 4,988 more: 4,088 succeeded, 900 pending"
    narrow = picture(graph, 44)
    assert narrow[13:15] == ["┃  … and 4,988 more:", "┃    4,088 succeeded, 900 pending"]


def test_a_long_chain_is_folded():
    graph = graph_of_jobs("a0", *(f"a{number}<a{number - 1}" for number in range(1, 1000)))
    lines = picture(graph)
    assert "┆ … and 941 more: 941 pending" in lines
    assert len(lines) < 130


def test_times_and_reasons_stand_behind_the_state():
    one, two, three, four = graph_of_jobs("a=SUCCEEDED", "b<a=FAILED", "c<b=CANCELED", "d=RUNNING").nodes
    started = NOW - timedelta(seconds=3)
    nodes = (
        replace(one, started_at=started, finished_at=NOW - timedelta(seconds=1.8)),
        replace(two, reason="retry_exhausted", error_class="shop.errors.CardError"),
        replace(three, reason="upstream_failed"),
        replace(four, picked_at=started),
        replace(four, id=id_of("e"), status=JobStatus.PENDING, due_at=NOW + timedelta(minutes=5)),
    )
    graph = FlowGraph(flow_id=one.id, nodes=nodes, edges=(), groups=())
    assert [line.split(maxsplit=3)[2:] for line in picture(graph)] == [
        ["SUCCEEDED", "1.2 s"],
        ["FAILED", "retry_exhausted: CardError"],
        ["CANCELED", "upstream_failed"],
        ["RUNNING", "3.0 s"],
        ["PENDING", "due in 5 min"],
    ]


def test_ids_are_shortened_to_differing_digits_and_the_requested_job_is_marked():
    lines = picture(graph_of_jobs("a", "b<a"), 80, focus=id_of("b"))
    assert lines[0].split() == ["○", "shop:a", "…000061", "PENDING"]
    assert lines[2].split() == ["○", "shop:b", "◂", "…000062", "PENDING"]


def test_control_characters_do_not_reach_the_terminal():
    (node,) = graph_of_jobs("a=FAILED").nodes
    bad = replace(node, target="shop:\x1b[2J\nq", reason="x\x07\x9b", error_class="E\u202e")
    graph = FlowGraph(flow_id=node.id, nodes=(bad,), edges=(), groups=())
    text = "".join(span.text for line in draw(graph, 80, NOW) for span in line)
    assert not set(text) & set("\x1b\x07\x9b\u202e\n")


def test_label_of_a_branch_on_an_outcome_is_its_description():
    """J8.2: behind what it follows; a long one is cut."""
    graph = graph_of_jobs("a", "f!a", "b<a")
    edges = tuple(replace(edge, label="tell support" if edge.kind == "failure" else "") for edge in graph.edges)
    assert "├╌ on failure: tell support" in picture(replace(graph, edges=edges))
    edges = tuple(replace(edge, label="tell " * 20 if edge.kind == "failure" else "") for edge in graph.edges)
    assert max(map(len, picture(replace(graph, edges=edges)))) <= 60
