"""`windlass bench` measures, checks what it measured, and leaves nothing behind. Speed is not asserted."""

import json
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from tests.cli.commands import Commands
from tests.support.facts import rows
from windlass.cli.bench import measure, verify
from windlass.cli.bench.scratch import SqliteScratch


def bench(folder: Path, *arguments: str) -> dict:
    code, said = Commands(folder, "").run("bench", "--json", *arguments)
    assert code == 0, said
    results = json.loads(said)["results"]
    return {result["workload"]: result for result in results}


def check(results: dict, workloads: str) -> None:
    assert list(results) == workloads.split(",")
    for result in results.values():
        assert result["verified"], result["problems"]
        assert result["value"] > 0 or result["unit"] == "ms"
        assert result["values"]


def test_workloads_and_floors_run_on_sqlite(tmp_path: Path):
    workloads = "W1,W1c,W2,W4,W6,W7,W9"
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    results = bench(tmp_path, "--store", store, "--jobs", "64", "--workload", workloads, "--floor")
    check(results, workloads)
    assert results["W4"]["floor"] > 0
    assert results["W4"]["ratio"] == pytest.approx(results["W4"]["value"] / results["W4"]["floor"])
    assert [path.name for path in tmp_path.iterdir()] == ["output-0"], "files of its own, removed afterwards"


def test_workloads_and_floors_run_on_postgres(tmp_path: Path, postgres_server):
    workloads = "W1,W2,W3,W5,W8"
    results = bench(tmp_path, "--store", postgres_server.url, "--jobs", "16", "--workload", workloads, "--floor")
    check(results, workloads)
    assert results["W3"]["store"].startswith("PostgreSQL")
    assert results["W8"]["store"].startswith("SQLite")
    assert results["W5"]["details"]["p99"] >= results["W5"]["value"]
    with psycopg.connect(postgres_server.url) as server:
        left = server.execute("SELECT datname FROM pg_database WHERE datname LIKE 'windlass_bench_%'").fetchall()
    assert left == []


def test_runs_are_repeated_in_pairs(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    results = bench(tmp_path, "--store", store, "--jobs", "20", "-w", "w2", "--floor", "--repeat", "3")
    assert len(results["W2"]["values"]) == len(results["W2"]["floors"]) == 3
    assert results["W2"]["value"] == sorted(results["W2"]["values"])[1]


def test_the_table_names_store_floor_and_target(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    code, said = Commands(tmp_path, "").run("bench", "--store", store, "--jobs", "20", "-w", "W2", "--floor")
    assert code == 0, said
    assert "store: SQLite" in said
    assert "≥ 40,000/s" in said
    assert "ratio" in said


def test_an_unknown_workload_is_refused(invoke):
    result = invoke("bench", "--workload", "W1,W77")
    assert result.exit_code == 2
    assert "expected some of W1, W1c, W2" in result.output


@pytest.fixture
def measured(tmp_path: Path):
    """A store on which ten jobs were drained, and checked."""
    with measure.migrated(SqliteScratch(tmp_path)) as (url, app):
        measure.fill(app, app.noop, 10)
        run = measure.drained_by("work", url, 5, 1, 10, lambda done: None)
        assert verify.drained(url, 10, run) == []
        yield SimpleNamespace(url=url, run=run)


def test_a_lost_job_is_found(measured):
    rows(measured.url, "DELETE FROM windlass_done WHERE id IN (SELECT id FROM windlass_done LIMIT 1)")
    assert "jobs ended: expected {'SUCCEEDED': 10}, found {'SUCCEEDED': 9}" in verify.drained(
        measured.url, 10, measured.run
    )


def test_a_job_that_ran_twice_is_found(measured):
    rows(
        measured.url,
        "INSERT INTO windlass_attempt (job_id, fence, number, ended_at, outcome) "
        "SELECT job_id, fence + 1, number + 1, ended_at, outcome FROM windlass_attempt LIMIT 1",
    )
    problems = verify.drained(measured.url, 10, measured.run)
    assert "runs in the history: expected {'succeeded': 10}, found {'succeeded': 11}" in problems


def test_a_body_that_was_entered_twice_is_found(measured):
    twice = measured.run._replace(bodies=11)
    assert verify.drained(measured.url, 10, twice) == ["bodies entered: expected 10, found 11"]


def test_a_job_that_is_not_over_is_found(measured):
    rows(measured.url, "UPDATE windlass_done SET status = 'FAILED' WHERE id IN (SELECT id FROM windlass_done LIMIT 1)")
    assert verify.drained(measured.url, 10, measured.run) != []
