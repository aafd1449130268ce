"""`windlass execution pending` and `complete`, and what other commands say of executions that wait outside."""

from pathlib import Path

import pytest

from tests.cli.order_pipeline import declare_approval
from windlass import ExecutionHandle, Pipeline
from windlass.testing import drain

OFFICE = """
from tests.cli.order_pipeline import declare_approval
from windlass import Windlass

app = Windlass()
declare_approval(app)
"""


@pytest.fixture
def approval(desk) -> Pipeline:
    (Path.cwd() / "office.py").write_text(OFFICE)
    return declare_approval(desk.app)


def waiting(desk, approval: Pipeline) -> ExecutionHandle:
    run = approval.submit(7)
    drain(desk.app)
    return run


def test_open_waits_are_listed_without_tokens(desk, approval: Pipeline):
    """P8.1, P2.2: the interaction, the request and the deadline; tokens only where they are asked for."""
    run = waiting(desk, approval)
    (line,) = desk.stdout("execution", "pending").splitlines()
    assert line.split("\t")[:3] == [f"{run.id}:0", "approval", "ask"]
    assert line.endswith('{"order":7}')
    assert "token" not in desk.read("execution", "pending", "--pipeline", "approval")["items"][0]
    assert desk.read("execution", "pending", "--tokens")["items"][0]["token"].startswith("wl1.")
    assert desk.read("execution", "pending", "--tenant", "acme")["items"] == []
    (listed,) = desk.read("execution", "list", "--status", "waiting_external")["items"]
    assert (listed["id"], listed["status"]) == (str(run.id), "WAITING_EXTERNAL")
    assert desk.read("pipeline", "list")["items"][0]["waiting"] == 1
    explained = desk.read("execution", "explain", run.id)
    assert (explained["code"], explained["until"]) == ("waiting_external", listed["due_at"])
    assert "an answer from outside to step ask" in desk.stdout("execution", "show", run.id)


def test_a_wait_is_answered_once(desk, approval: Pipeline):
    """P8.2: a second answer gets the first one."""
    run = waiting(desk, approval)
    name = f"{run.id}:0"
    assert desk.stdout("execution", "complete", name, "--answer", "true") == f"{name}\tanswered\n"
    assert (
        desk.stdout("execution", "complete", name, "--answer", "false") == f"{name}\twas answered before, with true\n"
    )
    drain(desk.app)
    assert run.result(0) is True


def test_a_token_is_read_from_standard_input(desk, approval: Pipeline):
    """P8.1: arguments are visible to other users of a machine."""
    run = waiting(desk, approval)
    (wait,) = desk.app.executions.pending()
    done = desk.run("execution", "complete", "--token-stdin", "--answer", "true", stdin=f"{wait.token}\n")
    assert (done.exit_code, wait.token in done.output) == (0, False), done.output
    drain(desk.app)
    assert run.result(0) is True


@pytest.mark.parametrize("given", [["--answer", "true"], ["x:0", "--token-stdin", "--answer", "true"]])
def test_an_answer_has_one_address(desk, approval: Pipeline, given: list[str]):
    """P8.1: an interaction id, or a token on standard input."""
    del approval
    assert desk.run("execution", "complete", *given).exit_code == 2


def test_answers_that_are_no_json_or_do_not_fit_are_refused(desk, approval: Pipeline):
    """P8.1: nothing is stored."""
    run = waiting(desk, approval)
    assert desk.run("execution", "complete", f"{run.id}:0", "--answer", "yes").exit_code == 2
    refused = desk.run("execution", "complete", f"{run.id}:0", "--answer", '"yes"')
    assert (refused.exit_code, "must be bool, got 'yes'" in refused.stderr) == (1, True)
    assert len(desk.read("execution", "pending")["items"]) == 1
