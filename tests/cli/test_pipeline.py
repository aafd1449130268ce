"""`windlass pipeline list`."""

import pytest

from tests.cli.order_pipeline import declare, open_office
from windlass import HourlyCount, Pipeline
from windlass.cli.pipeline import _hours
from windlass.domain.pipeline_summary import version_key
from windlass.testing import drain


@pytest.fixture
def orders(desk) -> Pipeline:
    open_office()
    return declare(desk.app)


def test_pipelines_are_listed_with_their_counts_and_the_rule_that_applies(desk, orders: Pipeline):
    """P1.4, P10.1: declared ones, before anything has run; then what ended and was rejected in the last hour."""
    assert desk.stdout("pipeline", "list") == "orders\t1\t4\t0\t0 (0)\t0 (0)\t0 (0)\t0 (0)\t0\t0\tnothing rises\n"
    runs = [orders.submit({"id": number, "lines": 10}) for number in (1, 2, 14)]
    drain(desk.app)
    assert [run.status().value for run in runs] == ["SUCCEEDED", "SUCCEEDED", "DLQ"]
    orders.submit({"id": 3, "lines": 1}, tenant="acme")
    (line,) = desk.stdout("pipeline", "list").splitlines()
    rejects = line.split("\t")[5]
    assert line.split("\t") == [
        *("orders", "1", "4", "1", "2 (0)", rejects, "1 (0)", "0 (0)", "0", "0"),
        "DLQ rises: dependency or systemic failure; rejects rise: data quality or business-rule drift",
    ]
    (item,) = desk.read("pipeline", "list")["items"]
    assert (item["open"], item["dead"]["last"], item["rules"]) == (1, 1, ["dead_letters_rise", "rejects_rise"])
    assert item["versions"][0]["steps"] == ["parse", "lines", "price", "total"]
    drawn = desk.drawn("pipeline", "list", columns=80)
    assert "windlass dlq groups" in drawn
    assert "↑ 2 (0)" in drawn


def test_executions_begun_with_other_steps_are_counted_as_stranded(desk, orders: Pipeline):
    """P1.4: of a version that the application declares with other steps."""
    run = orders.submit({"id": 1, "lines": 1})
    open_office(extra=True)
    assert desk.stdout("pipeline", "list").split("\t")[8] == "1"
    (stranded,) = desk.read("execution", "list", "--stranded")["items"]
    assert stranded["id"] == str(run.id)
    assert desk.read("execution", "list", "--stranded", "--pipeline", "other")["items"] == []
    assert "stranded: it was begun with definition" in desk.stdout("execution", "explain", run.id)
    refused = desk.run("execution", "list", "--stranded", "--tenant", "acme")
    assert (refused.exit_code, "leave out --tenant" in refused.stderr) == (2, True)


def test_a_store_without_pipelines_is_reported(desk):
    """P10.1."""
    result = desk.run("pipeline", "list")
    assert (result.exit_code, result.stdout, "there is no pipeline" in result.stderr) == (0, "", True)


def test_counts_that_stopped_at_the_limit_are_marked():
    """P10.1: 10,000 and more."""
    count = HourlyCount(last=10_000, before=12, last_bounded=True)
    assert (_hours(count, "red").text, _hours(count, "red").plain) == ("↑ 10,000+ (12)", "10000+ (12)")


def test_versions_are_in_the_order_of_their_numbers():
    """P1.4."""
    assert sorted(["10", "2", "1.10", "1.9", "beta"], key=version_key) == ["beta", "1.9", "1.10", "2", "10"]
