"""`windlass dlq` for executions of pipelines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windlass import Pipeline, Windlass

NAME = "orders"
ORDERS = """
from tests.cli.test_dlq_executions import declare
from windlass import Windlass

app = Windlass()
declare(app)
"""


def declare(app: Windlass) -> Pipeline:
    """A pipeline that fails at the third of its steps."""
    orders = app.pipeline(NAME, version="1", retry_limit=1, retry_wait=0.01)

    @orders.step
    def parse(number: int) -> int:
        return number

    @orders.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @orders.step
    def price(line: int) -> int:
        if line == 2:
            raise ValueError(f"line {line} has no price")
        return line

    return orders


@pytest.fixture
def orders(desk: Any) -> Pipeline:
    (Path.cwd() / "orders_app.py").write_text(ORDERS)
    return declare(desk.app)


def failed(desk: Any, orders: Any) -> str:
    run = orders.submit(4, key="four", tenant="acme")
    desk.work_off(run)
    return str(run.id)


def test_kinds_are_listed_grouped_and_purged_apart(desk: Any, orders: Pipeline):
    """P6.1: both without --kind."""
    (job,), execution = desk.failed(), failed(desk, orders)
    for kind, ids in (("job", [job]), ("execution", [execution])):
        for arguments in (("--kind", kind), ("--filter", f"kind={kind}")):
            found = desk.read("dlq", "list", *arguments)["items"]
            assert [item["job_id"] for item in found] == ids
            assert len(desk.read("dlq", "groups", *arguments)["items"]) == 1
        assert (
            desk.run("dlq", "purge", "--older-than", "0s", "--kind", kind, "--dry-run").stdout.split("\t")[0] == ids[0]
        )
    assert len(desk.read("dlq", "list")["items"]) == len(desk.read("dlq", "groups")["items"]) == 2
    assert "of kind execution older than" in desk.run("dlq", "purge", "--kind", "execution").stderr
    assert (
        desk.stdout("dlq", "purge", "--older-than", "0s", "--kind", "execution", "--yes") == "deleted 1 dead letter\n"
    )
    assert [item["job_id"] for item in desk.read("dlq", "list")["items"]] == [job]


def test_show_prints_where_an_execution_failed(desk: Any, orders: Pipeline):
    """P6.1: tenant, pipeline, step by name, item, definition hash; without the code, the step by its number."""
    execution = failed(desk, orders)
    text = desk.stdout("dlq", "show", execution, WINDLASS_APP="orders_app:app")
    for expected in (
        "  tenant: acme\n",
        "  pipeline: orders\n",
        "  step: 2 (price), item 2\n",
        f"  definition hash: {orders.definition.hash}\n",
        "  execution key: four\n",
        "  retries: 1\n",
        "  reason: retry_exhausted\n",
        f"  to start it over: windlass execution redrive {execution} --tenant acme --dry-run\n",
    ):
        assert expected in text, text
    assert "idempotency key" not in text
    assert "  step: 2, item 2\n" in desk.stdout("dlq", "show", execution)
    read = desk.read("dlq", "show", execution)
    assert (read["tenant_id"], read["terminal_status"], read["resource_type"]) == ("acme", "DLQ", "pipeline")


def test_a_dry_run_lists_the_steps_that_will_be_called_again(desk: Any, orders: Pipeline):
    """P6.3: with effect keys and tries so far; a job is its id, and without the code the reason is given."""
    (job,), execution = desk.failed(), failed(desk, orders)
    output = desk.stdout("dlq", "redrive", "--dry-run", WINDLASS_APP="orders_app:app").splitlines()
    assert output[:2] == [job, execution]
    assert output[2:] == [f"{execution}\tstep 2 price\t{execution}:2\t2 tries so far"]
    unknown = desk.stdout("dlq", "redrive", "--dry-run", "--kind", "execution").splitlines()
    assert (unknown[0], "orders@1 is not declared in this application" in unknown[1]) == (execution, True)
    assert desk.stdout("dlq", "redrive", "--dry-run", "--kind", "job").splitlines() == [job]
    assert len(desk.app.dead_letters.find()) == 2


def test_a_redrive_of_a_kind_leaves_the_other(desk: Any, orders: Pipeline):
    """P6.3: bounded by kind."""
    (job,), execution = desk.failed(), failed(desk, orders)
    assert (
        desk.stdout("dlq", "redrive", "--kind", "execution", "--yes")
        .splitlines()[-1]
        .startswith("re-driven 1 dead letter: ")
    )
    assert [str(letter.job_id) for letter in desk.app.dead_letters.find()] == [job]
    assert desk.app.executions.get(execution, "acme").status.value == "QUEUED"


def test_an_unknown_kind_is_refused(sqlite_desk: Any):
    """P6.1."""
    for verb in ("list", "groups", "redrive", "purge"):
        result = sqlite_desk.run("dlq", verb, "--kind", "executions")
        assert (result.exit_code, "'job', 'execution'" in result.stderr) == (2, True)
    refused = sqlite_desk.run("dlq", "list", "--filter", "kind=executions")
    assert (refused.exit_code, "did you mean 'execution'" in refused.stderr.replace("\n", " ")) == (2, True)
