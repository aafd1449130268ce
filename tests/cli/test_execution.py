"""`windlass execution`."""

import re

import pytest

from tests.cli.order_pipeline import declare, open_office
from windlass import ExecutionHandle, Pipeline
from windlass.client import execution_reports
from windlass.testing import drain


@pytest.fixture
def orders(desk) -> Pipeline:
    open_office()
    return declare(desk.app)


def ran(desk, orders: Pipeline, number: int, lines: int = 30, **options: str) -> ExecutionHandle:
    run = orders.submit({"id": number, "lines": lines}, **options)
    drain(desk.app)
    return run


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_executions_of_a_tenant_are_listed_newest_first(desk, orders: Pipeline):
    """P2.1, P3.3: by tenant, pipeline and status; pages go on."""
    first = ran(desk, orders, 1, key="one")
    failed = ran(desk, orders, 14)
    orders.submit({"id": 2, "lines": 1}, tenant="acme")
    lines = [line.split("\t") for line in desk.stdout("execution", "list").splitlines()]
    assert [line[:4] for line in lines] == [
        [str(failed.id), "DLQ", "orders@1", "default"],
        [str(first.id), "SUCCEEDED", "orders@1", "default"],
    ]
    assert lines[0][5] == "price"
    assert lines[0][9] == "DoNotRetry: the price is negative"
    assert [one["tenant"] for one in desk.read("execution", "list", "--tenant", "acme")["items"]] == ["acme"]
    assert len(desk.read("execution", "list", "--status", "dlq")["items"]) == 1
    assert desk.read("execution", "list", "--pipeline", "other")["items"] == []
    page = desk.run("execution", "list", "--limit", 1)
    assert f"go on: windlass execution list --limit 1 --cursor {failed.id}" in page.stderr.replace("main ", "windlass ")


def test_execution_is_shown_with_its_items_and_its_log(desk, orders: Pipeline):
    """P2.1, P2.4: all fields, items by state, every transition with the name of its step."""
    run = ran(desk, orders, 1, key="one")
    output = desk.stdout("execution", "show", run.id)
    assert "status: SUCCEEDED" in output
    assert "steps: ✓ parse  ✓ lines  ✓ price  ✓ total" in output
    assert 'input: {"id":1,"lines":30}' in output
    assert f"result: {sum(range(30)) - 7}" in output
    assert "items:\n1\tlines\t100 %\t30\t29\t0\t0\t0\t1\t0\n" in output
    kinds = [line.split("\t")[2:4] for line in output.partition("log:\n")[2].splitlines()]
    assert kinds[:2] == [["submitted", ""], ["step", "parse"]]
    assert kinds[2] == ["chunk x 3", "lines"]
    assert kinds[-1] == ["ended", "total"]
    shown = desk.read("execution", "show", run.id)
    assert (shown["key"], shown["step"], shown["progress"]["stages"][0]["rejected"]) == ("one", "total", 1)
    assert [row["version"] for row in shown["history"]] == list(range(1, shown["row_version"] + 1))
    for columns in (80, 120):
        drawn = plain(desk.drawn("execution", "show", run.id, columns=columns))
        assert max(map(len, drawn.splitlines())) <= columns
        assert "━━━━ 100 %" in drawn


def test_parts_of_a_dead_execution_have_no_jobs(desk, orders: Pipeline):
    """P2.1: they are counted, and its log says why it ended."""
    run = ran(desk, orders, 14)
    shown = desk.run("execution", "show", run.id)
    assert "parts:\n" not in shown.stdout
    assert "parts: 3 wait for a job" in shown.stderr
    assert f"start it over: windlass execution redrive {run.id} --dry-run" in shown.stderr
    assert shown.stdout.splitlines()[-1].endswith("\tDoNotRetry: the price is negative")


def test_short_ids_are_those_of_the_tenants_executions(desk, orders: Pipeline):
    """P3.3: jobs of parts, and executions of others, are no candidates."""
    run = ran(desk, orders, 1)
    assert str(run.id) in desk.stdout("execution", "show", str(run.id)[:13])
    refused = desk.run("execution", "show", str(run.id)[:13], "--tenant", "acme")
    assert (refused.exit_code, "no execution of tenant acme" in refused.stderr) == (1, True)
    refused = desk.run("execution", "show", run.id, "--tenant", "acme")
    assert (refused.exit_code, "no execution" in refused.stderr) == (1, True)


def test_waiting_execution_is_explained(desk, orders: Pipeline):
    """P2.2, P10.1: what holds it back, from its retry to the queue of its parts."""
    run = orders.submit({"id": 1, "lines": 3})
    assert desk.stdout("execution", "explain", run.id).startswith("no_worker: ")
    retried, parts = ran(desk, orders, 13), ran(desk, orders, 15)
    output = desk.stdout("execution", "explain", retried.id)
    assert output.startswith(
        "waiting_for_retry: it waits for attempt 2 of step parse, attempt 1 failed: ConnectionError: the catalogue is"
    )
    assert "\x1b" not in output
    output = desk.stdout("execution", "explain", parts.id)
    assert output.startswith(
        "waiting_for_retry: it waits for 1 item of step price in 1 part, of which item 3 waits for"
    )
    assert "until 20" in output
    shown = desk.stdout("execution", "show", parts.id)
    assert "1\tlines\t96 %\t30\t28\t0\t1\t0\t1\t0" in shown
    assert "\tPENDING\t0 to 9\tprice\t" in shown
    assert desk.stdout("execution", "pause", parts.id) == f"{parts.id}\tpaused\n"
    assert desk.read("execution", "explain", parts.id)["code"] == "paused"
    assert desk.read("execution", "explain", run.id)["code"] == "succeeded"


def test_executions_are_paused_resumed_and_canceled(desk, orders: Pipeline):
    """P2.2, P2.7: a line for each, and a refusal says why."""
    run = orders.submit({"id": 1, "lines": 3})
    assert desk.stdout("execution", "pause", run.id) == f"{run.id}\tpaused\n"
    assert desk.stdout("execution", "pause", run.id, code=1) == f"{run.id}\tnot paused: it is PAUSED already\n"
    assert desk.stdout("execution", "resume", run.id) == f"{run.id}\tresumed\n"
    assert (
        desk.stdout("execution", "resume", run.id, code=1) == f"{run.id}\tnot resumed: it is not paused, but QUEUED\n"
    )
    assert desk.run("execution", "cancel", run.id).exit_code == 2
    assert desk.stdout("execution", "cancel", "--yes", run.id) == f"{run.id}\tcanceled\n"
    assert desk.stdout("execution", "cancel", "--yes", run.id, code=1) == (
        f"{run.id}\tnot canceled: it has ended (CANCELED)\n"
    )
    assert "it has ended: canceled" in desk.stdout("execution", "explain", run.id)


def test_dry_run_of_a_redrive_lists_what_is_called_again(desk, orders: Pipeline):
    """P2.5, P6.3: steps with their effect keys, attempts so far and items that are left; nothing is changed."""
    run = ran(desk, orders, 14, lines=5)
    output = desk.run("execution", "redrive", run.id, "--dry-run")
    assert output.stdout.splitlines()[0].split("\t") == ["price", "1", "1", f"{run.id}:2:ITEM"]
    assert output.stdout.splitlines()[1].split("\t") == ["total", "0", "", f"{run.id}:3"]
    version = desk.app.executions.get(run.id).row_version
    assert f"1 of 2 steps would be called again; version {version}" in output.stderr
    output = desk.stdout("execution", "redrive", run.id, "--dry-run", "--from-step", "lines")
    assert [line.split("\t")[:2] for line in output.splitlines()] == [["lines", "1"], ["price", "1"], ["total", "0"]]
    assert desk.read("execution", "redrive", run.id, "--dry-run")["steps"][0]["per_item"] is True
    refused = desk.run("execution", "redrive", ran(desk, orders, 1).id, "--dry-run")
    assert (refused.exit_code, "would not be re-driven: it is SUCCEEDED" in refused.stderr) == (1, True)


def test_execution_is_redriven(desk, orders: Pipeline):
    """P6.3: from where it failed, or from an earlier step; a stale version is refused."""
    run = ran(desk, orders, 14, lines=5)
    refused = desk.run("execution", "redrive", run.id, "--yes", "--expected-version", 1)
    assert (refused.exit_code, "not 1: it has changed meanwhile" in refused.stderr) == (1, True)
    refused = desk.run("execution", "redrive", run.id, "--yes", "--from-step", "total")
    assert (refused.exit_code, "whose input is still stored: parse (0), lines (1)" in refused.stderr) == (2, True)
    assert desk.run("execution", "redrive", run.id).exit_code == 2
    output = desk.stdout("execution", "redrive", run.id, "--yes", "--from-step", 0, "--note", "prices are back")
    assert output == f"{run.id}\tre-driven from step 0\n"
    assert run.status().value == "QUEUED"
    refused = desk.run("execution", "redrive", run.id, "--yes")
    assert (refused.exit_code, "only one that is DLQ or FAILED" in refused.stderr) == (1, True)


def test_outputs_of_two_executions_are_compared_step_by_step(desk, orders: Pipeline):
    """P2.3: from their logs; equal, different, or only in one of them."""
    first, same, other, failed = (ran(desk, orders, *given) for given in ((1, 5), (1, 5), (2, 5), (13, 1)))
    assert desk.stdout("execution", "diff", first.id, same.id).splitlines() == [
        'parse\tequal\t{"id":1,"lines":5}\t{"id":1,"lines":5}',
        "lines\tsame number of items\t5 items\t5 items",
        "total\tequal\t10\t10",
    ]
    output = desk.stdout("execution", "diff", first.id, other.id, code=1)
    assert 'parse\tdifferent\t{"id":1,"lines":5}\t{"id":2,"lines":5}' in output
    found = desk.read("execution", "diff", first.id, failed.id, code=1)["items"]
    assert [(one["step"], one["difference"]) for one in found] == [
        ("parse", "first_only"),
        ("lines", "first_only"),
        ("total", "first_only"),
    ]
    drawn = plain(desk.drawn("execution", "diff", first.id, other.id, columns=80, code=1))
    assert '≠ parse  different\n    - {"id":1,"lines":5}\n    + {"id":2,"lines":5}\n' in drawn


def test_text_of_a_step_does_not_act_on_the_terminal(desk, orders: Pipeline):
    """P10.1: control characters are shown as signs, in every form."""
    run = ran(desk, orders, 13)
    for arguments in (("list",), ("show", run.id), ("explain", run.id)):
        assert "\x1b[31mred" not in desk.drawn("execution", *arguments)
        assert "\x1b" not in desk.stdout("execution", *arguments)


def test_jobs_of_executions_lead_to_them(desk, orders: Pipeline):
    """P2.1: the main job, and those of parts."""
    run = ran(desk, orders, 15)
    assert f"windlass execution show {run.id}" in desk.run("job", "show", run.id).stderr
    assert f"windlass execution explain {run.id}" in desk.run("job", "explain", run.id).stderr
    (part,) = desk.app.executions.progress(run.id).parts
    assert f"items of an execution: windlass execution show {run.id}" in desk.run("job", "show", part.job_id).stderr


def test_log_of_many_pages_is_read_to_its_end(desk, orders: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """P2.4: every transition, also of large expansions."""
    run = ran(desk, orders, 1, lines=50)
    monkeypatch.setattr(execution_reports, "LOG_PAGE", 2)
    versions = [row.version for row in desk.app.executions.history(run.id)]
    assert versions == list(range(1, desk.app.executions.get(run.id).row_version + 1))


def test_log_names_the_node_of_a_failed_attempt(desk, orders: Pipeline):
    """P2.4, P10.1."""
    run = ran(desk, orders, 13)
    (retry,) = [row for row in desk.app.executions.history(run.id) if row.kind == "retry"]
    assert retry.node is not None
