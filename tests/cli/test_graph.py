"""`windlass job graph`: a flow drawn, for pipes, for programs, and into a file."""

import re
from pathlib import Path

import pytest

from tests.cli.desk import Desk
from windlass import JobHandle, group


@pytest.fixture
def flow(desk: Desk) -> JobHandle[object]:
    """A flow that has ended: one of two members failed."""
    members = group(desk.charge.bind(2), desk.decline.bind(3)).then_on_failure(desk.charge.bind(4))
    made = desk.charge.bind(1).then(members.then(desk.charge.bind(5))).enqueue()
    desk.work_off(*(desk.app.handle(node.id) for node in made.graph().nodes))
    return made


def test_a_flow_is_drawn_with_its_states(desk: Desk, flow: JobHandle[object]):
    """J8.1, J8.3: from any of its jobs, which is marked."""
    last = flow.graph().nodes[-1].id
    plain = re.sub(r"\x1b\[[\d;]*m", "", desk.drawn("job", "graph", last, columns=80))
    title, counts, empty, *lines = plain.splitlines()
    assert (title, empty) == (f"flow {flow.id}", "")
    assert counts == "5 jobs: 3 succeeded, 1 failed, 1 canceled"
    assert [re.split(r"  +…", line)[0] for line in lines] == [
        "✓ tests.cli.desk:charge",
        "┢━ group  1/2 succeeded, 1 failed",
        "┣━ ✓ tests.cli.desk:charge",
        "┣━ ✗ tests.cli.desk:decline",
        "┡━",
        "├╌ on failure",
        "│  ✓ tests.cli.desk:charge",
        "│",
        "⊘ tests.cli.desk:charge ◂",
    ]
    assert re.search(r"FAILED +non_retryable: DoNotRetry", lines[3])
    assert max(map(len, lines)) <= 80
    assert "\x1b[1;31mFAILED" in desk.drawn("job", "graph", last)


def test_a_failed_job_is_named_with_the_command_that_shows_it(desk: Desk, flow: JobHandle[object]):
    result = desk.run("job", "graph", flow.id, FORCE_COLOR="1", COLUMNS="80", TERM="xterm")
    failed = flow.graph().nodes[2].id
    assert f"why it failed: windlass job show {failed}" in result.stderr


def test_a_pipe_gets_a_line_per_job(desk: Desk, flow: JobHandle[object]):
    graph = flow.graph()
    lines = [line.split("\t") for line in desk.stdout("job", "graph", flow.id).splitlines()]
    assert [line[0] for line in lines] == [str(node.id) for node in graph.nodes]
    assert [line[1] for line in lines] == ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED", "CANCELED"]
    assert [line[3] for line in lines] == ["", "then", "then", "failure", "then"]
    assert lines[-1][4:] == [str(graph.groups[0].id), "", "", "upstream_failed"]
    assert desk.stdout("job", "graph", flow.id).isascii()


def test_programs_get_the_graph(desk: Desk, flow: JobHandle[object]):
    """api.md: `handle.graph()` gives nodes and edges."""
    graph, output = flow.graph(), desk.read("job", "graph", flow.id)
    assert set(output) == {"flow_id", "nodes", "edges", "groups"}
    assert output["nodes"][2]["reason"] == "non_retryable"
    assert output["edges"][-1] == {
        "parent_id": str(graph.groups[0].id),
        "child_id": str(graph.nodes[-1].id),
        "kind": "then",
        "label": "",
    }
    (found,) = output["groups"]
    assert (found["total"], found["succeeded"], found["failed"], len(found["members"])) == (2, 1, 1, 2)


def test_a_picture_is_written_to_a_file(desk: Desk, flow: JobHandle[object]):
    printed = desk.stdout("job", "graph", flow.id, "--svg", "flow.svg")
    assert printed == "flow.svg\t5 jobs: 3 succeeded, 1 failed, 1 canceled\n"
    assert str(flow.id) in Path("flow.svg").read_text(encoding="utf-8")
    nowhere = desk.run("job", "graph", flow.id, "--svg", "missing/flow.svg")
    assert (nowhere.exit_code, "cannot be written: No such file" in nowhere.stderr) == (1, True)
    for other in ("--watch", "--json"):
        both = desk.run("job", "graph", flow.id, "--svg", "other.svg", other)
        assert (both.exit_code, "--svg writes one picture" in both.stderr) == (2, True)


def test_the_exit_code_of_a_watched_flow_is_its_outcome(desk: Desk, flow: JobHandle[object]):
    assert desk.stdout("job", "graph", "--watch", flow.id, code=1)
    good = desk.charge.bind(1).then(desk.charge.bind(2)).enqueue()
    desk.work_off(*(desk.app.handle(node.id) for node in good.graph().nodes))
    assert len(desk.stdout("job", "graph", "--watch", good.id).splitlines()) == 2


def test_a_job_outside_of_flows_is_drawn_and_an_unknown_one_is_an_error(desk: Desk):
    job = desk.charge.enqueue(1)
    assert f"job {job.id}, in no flow" in desk.drawn("job", "graph", job.id)
    unknown = desk.run("job", "graph", "00000000-0000-7000-8000-000000000000")
    assert (unknown.exit_code, "no job has the id" in unknown.stderr) == (1, True)
