"""`windlass bench` and `make bench` measure, check what they measured, and leave nothing behind."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from benchmarks.peers import catalog
from benchmarks.peers.comparisons import COMPARISONS
from benchmarks.peers.run import Outcome, lines, parse
from benchmarks.run import BESIDE, GOALS
from benchmarks.verify import verify
from tests.cli.commands import Commands
from tests.support.facts import rows
from windlass import Settings, Windlass
from windlass.cli.bench import jobs, measure, report, workloads
from windlass.cli.bench.batch_workloads import check_commits
from windlass.cli.bench.checks import Evidence, check
from windlass.cli.bench.flow_workloads import check_join
from windlass.cli.bench.measure import Load
from windlass.cli.bench.scratch import SqliteScratch
from windlass.cli.bench.workloads import Result

ROOT = Path(__file__).parents[2]
ON_POSTGRES = ("pgqueuer", "procrastinate", "graphile", "awa")
EVERY_CHECK = pytest.mark.parametrize("find_problems", [check, verify], ids=["of the command", "of benchmarks/"])


def bench(folder: Path, *arguments: str) -> dict:
    """`windlass bench`, as installed."""
    command = Commands(folder, "").start("bench", "--json", *arguments)
    assert command.exit_code(500) == 0, command.printed  # many processes, one after the other
    return by_workload(command.printed)


def floors(*arguments: str) -> dict:
    """`make bench`: the same in turns with the floors, every table checked."""
    command = [sys.executable, "-m", "benchmarks.run", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return by_workload(done.stdout)


def by_workload(printed: str) -> dict:
    return {result["workload"]: result for result in json.loads(printed)["results"]}


def check_results(results: dict, workloads: str) -> None:
    assert list(results) == workloads.split(",")
    for result in results.values():
        assert result["verified"], result["problems"]
        assert result["value"] > 0 or result["unit"] == "ms"
        assert result["values"]


def test_schedules_are_measured(tmp_path: Path):
    """J9.2: every tick is fired once, in transactions of 200."""
    results = bench(tmp_path, "--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "450", "--schedules")
    check_results(results, "S1,S2")
    assert results["S1"]["jobs"] == 450


def test_rounds_are_compared_with_one_drain(tmp_path: Path, postgres_server):
    """J3.1: with a snapshot held by another session, and statistics taken when one row was left."""
    results = bench(tmp_path, "--store", postgres_server.url, "--jobs", "160", "--churn")
    check_results(results, "W12,W12s")
    for result in results.values():
        assert result["ratio"] > 0
        assert 0 < result["details"]["slowest"] <= result["details"]["first"]
        assert result["details"]["pickup_p99"] >= result["details"]["pickup_p50"]


def test_every_workload_runs_on_sqlite(tmp_path: Path):
    workloads = "W1,W1c,W2,W4,W6,W7,W9,W10,W11"
    results = bench(tmp_path, "--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "64", "--workload", workloads)
    check_results(results, workloads)
    assert [path.name for path in tmp_path.iterdir()] == ["output-0"], "files of its own, removed afterwards"


def test_every_workload_runs_on_postgres(tmp_path: Path, postgres_server):
    workloads = "W1,W2,W3,W5,W8,W10,W11"
    results = bench(tmp_path, "--store", postgres_server.url, "--jobs", "16", "--workload", workloads)
    check_results(results, workloads)
    assert results["W3"]["store"].startswith("PostgreSQL")
    assert results["W8"]["store"].startswith("SQLite")
    assert results["W5"]["details"]["p99"] >= results["W5"]["value"]
    with psycopg.connect(postgres_server.url) as server:
        left = server.execute("SELECT datname FROM pg_database WHERE datname LIKE 'windlass_bench_%'").fetchall()
    assert left == []


def test_floors_are_measured_in_turns_on_sqlite(tmp_path: Path):
    workloads = "W2,W4,W9"
    results = floors("--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "32", "--workload", workloads)
    check_results(results, workloads)
    assert results["W4"]["floor"] > 0
    assert results["W4"]["ratio"] == pytest.approx(results["W4"]["value"] / results["W4"]["floor"])


def test_floors_are_measured_in_turns_on_postgres(postgres_server):
    workloads = "W1c,W3,W5,W10"
    results = floors("--store", postgres_server.url, "--jobs", "32", "--workload", workloads)
    check_results(results, workloads)
    assert results["W1c"]["floor"] > 0
    assert results["W3"]["floor"] > 0
    assert results["W5"]["floor"] is not None, "of so few jobs it may be zero: a body can start before enqueue returns"
    assert results["W3"]["target"] == "≥ 75 % of floor"
    assert results["W3"]["met"] in (True, False)


def test_limited_drains_are_compared_with_the_same_without_limits(tmp_path: Path):
    results = bench(tmp_path, "--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "16", "--limited")
    check_results(results, "L1,L2,L3")
    assert all(result["ratio"] > 0 for result in results.values())


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_flows_are_compared_with_as_many_loose_jobs(tmp_path: Path, postgres_server, store: str):
    url = f"sqlite:///{tmp_path / 'mine.db'}" if store == "sqlite" else postgres_server.url
    repeat = 2 if store == "sqlite" else 1
    results = bench(tmp_path, "--store", url, "--jobs", "16", "--flows", "--repeat", str(repeat))
    check_results(results, "F1,F2,F3,F4,F5,F6")
    compared = [result for key, result in results.items() if key not in {"F5", "F6"}]
    assert all(len(result["values"]) == len(result["floors"]) == repeat for result in compared)
    assert all(result["ratio"] > 0 for result in compared)
    assert results["F3"]["details"]["join_ms"] > 0
    assert 1 <= results["F4"]["details"]["jobs_a_commit"] <= 3


def test_flows_are_judged_by_their_target(tmp_path: Path):
    results = floors("--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "16", "--workload", "F2,F3,F5")
    check_results(results, "F2,F3,F5")
    assert [results[key]["target"] for key in ("F2", "F3")] == ["≥ 85 % of loose", "joined once"]
    assert results["F2"]["met"] in (True, False)
    assert (results["F5"]["target"], results["F5"]["met"]) == ("≥ 20,000/s, PostgreSQL", None), "this is SQLite"
    assert [BESIDE[key].text for key in ("F1", "F4")] == ["≥ 80 % of loose", "≥ 75 % of loose"]


def test_every_workload_has_a_target_of_its_own():
    assert {workload.key for workload in workloads.BY_KEY.values()} == {*GOALS, *BESIDE}


def test_the_table_names_the_wait_of_a_join(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    code, printed = Commands(tmp_path, "").run("bench", "--store", store, "--jobs", "8", "-w", "F3")
    assert code == 0, printed
    assert re.search(r"F3\tgroup and its join\t8\t[\d,]+/s, join \d+ ms\t", printed)


def test_a_join_that_ran_twice_or_lacks_results_is_found(tmp_path: Path):
    app = Windlass(f"sqlite:///{tmp_path / 'mine.db'}", settings=Settings())
    app.migrate()
    join = app.get(app.job(jobs.noop).enqueue("x").id)
    app.close()
    assert check_join(replace(join, attempts=1, result=8), 8) == []
    assert check_join(replace(join, attempts=2, result=7), 8) == [
        "attempts of the join: expected 1, found 2",
        "results that it got: expected 8, found 7",
    ]


def test_commits_have_the_size_that_the_workload_requests(tmp_path: Path):
    with measure.migrated(SqliteScratch(tmp_path)) as bench:
        measure.fill(bench, bench.noop, 50)
        run = measure.drained(bench, Load(50, 20, largest_flush=3))
    assert sum(size * count for size, count in run.commits.items()) == 50
    assert max(run.commits) <= 3
    assert check_commits(run, 3) == []
    assert check_commits(run._replace(commits=Counter({3: 14, 8: 1})), 3) == [
        "commits of more than 3 jobs: expected 0, found 1"
    ]


def test_the_table_names_the_size_of_commits():
    workload = workloads.BY_KEY["F4"]
    result = Result(workload, "SQLite", 16, 2000.0, [2000.0], None, [], None, [], {"jobs_a_commit": 2.345})
    assert report.row(result)[3].text == "2,000/s, 2.3 a commit"


def test_runs_are_repeated_in_pairs(tmp_path: Path):
    results = floors("--store", f"sqlite:///{tmp_path / 'mine.db'}", "--jobs", "20", "-w", "w2", "--repeat", "3")
    assert len(results["W2"]["values"]) == len(results["W2"]["floors"]) == 3
    assert results["W2"]["value"] == sorted(results["W2"]["values"])[1]


def test_the_table_names_store_and_results(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    code, printed = Commands(tmp_path, "").run("bench", "--store", store, "--jobs", "20", "-w", "W2")
    assert code == 0, printed
    assert "store: SQLite" in printed
    assert "W2\tenqueue in bulk\t20\t" in printed


@pytest.mark.parametrize("program", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda program: program.stem)
def test_every_benchmark_can_be_started(program: Path):
    """They are run by hand: a renamed module must be noticed before."""
    command = [sys.executable, "-m", f"benchmarks.{program.stem}", "--help"]
    environ = {**os.environ, "PYTHONPATH": str(program.parent)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_workload_is_refused(invoke):
    result = invoke("bench", "--workload", "W1,W77")
    assert result.exit_code == 2
    assert "expected some of W1, W1c, W2" in result.output


@pytest.fixture
def measured(tmp_path: Path):
    """A store on which ten jobs were drained."""
    with measure.migrated(SqliteScratch(tmp_path)) as bench:
        measure.fill(bench, bench.noop, 10)
        run = measure.drained(bench, Load(10, 5))
        evidence = Evidence(bench.app, 10, run=run)
        assert check(evidence) == verify(evidence) == []
        yield SimpleNamespace(url=bench.app.url, evidence=evidence)


def test_a_lost_job_is_found(measured):
    rows(measured.url, "DELETE FROM windlass_done WHERE id IN (SELECT id FROM windlass_done LIMIT 1)")
    assert "jobs ended: expected {'SUCCEEDED': 10}, found {'SUCCEEDED': 9}" in verify(measured.evidence)


def test_a_job_that_ran_twice_is_found(measured):
    rows(
        measured.url,
        "INSERT INTO windlass_attempt (job_id, fence, number, ended_at, outcome) "
        "SELECT job_id, fence + 1, number + 1, ended_at, outcome FROM windlass_attempt LIMIT 1",
    )
    found = verify(measured.evidence)
    assert "runs in the history: expected {'succeeded': 10}, found {'succeeded': 11}" in found


@EVERY_CHECK
def test_a_body_that_was_entered_twice_is_found(measured, find_problems):
    twice = measured.evidence._replace(run=measured.evidence.run._replace(bodies=11))
    assert find_problems(twice) == ["bodies entered: expected 10, found 11"]


@EVERY_CHECK
def test_a_job_that_still_waits_is_found(measured, find_problems):
    measured.evidence.app.enqueue_by_name("windlass.cli.bench.jobs:noop", ["x"], {})
    assert find_problems(measured.evidence) != []


def test_a_job_that_failed_is_found(measured):
    rows(measured.url, "UPDATE windlass_done SET status = 'FAILED' WHERE id IN (SELECT id FROM windlass_done LIMIT 1)")
    assert verify(measured.evidence) != []


# ---------------------------------------------------------------------- beside other queues: what needs none of them


@pytest.fixture
def installed(monkeypatch, tmp_path: Path):
    """Peers as they are after `make bench-peers-npm`, or with a part of that taken away."""
    packages = {package for peer in catalog.PEERS for package in peer.packages}
    state = SimpleNamespace(packages=packages, node="/usr/bin/node", modules=tmp_path)
    (tmp_path / "graphile-worker").mkdir()
    monkeypatch.setattr(catalog, "NODE_MODULES", tmp_path)
    monkeypatch.setattr(catalog, "find_spec", lambda name: name if name in state.packages else None)
    monkeypatch.setattr("shutil.which", lambda name: state.node)
    return state


def compared(*arguments: str) -> list[tuple[str, str]]:
    return [(one.workload.key, one.peer.key) for one in parse(arguments).comparisons]


def test_each_peer_is_compared_on_its_workloads(installed):
    assert set(compared()) == {
        *((key, peer) for key in ("W1", "W1c", "W2", "W3", "W4", "W5") for peer in ON_POSTGRES),
        ("W8", "huey"),
    }


def test_peers_and_workloads_are_selected(installed):
    assert compared("--peer", "graphile,Procrastinate", "-w", "w1C,w3") == [
        *(("W1c", "procrastinate"), ("W1c", "graphile")),
        *(("W3", "procrastinate"), ("W3", "graphile")),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peer", "graphile,celery"], "expected some of pgqueuer, procrastinate, graphile, awa, huey"),
        (["--workload", "W1,W77"], "expected some of W1, W1c, W2, W3, W4, W5, W8, got 'W1,W77'"),
        (["--peer", "huey", "--workload", "W1"], "nothing to compare"),
    ],
)
def test_a_comparison_that_does_not_exist_is_refused(installed, capsys, arguments: list[str], message: str):
    with pytest.raises(SystemExit, match="2"):
        parse(arguments)
    assert message in capsys.readouterr().err


def test_a_missing_peer_is_omitted_and_named_with_its_installation(installed):
    installed.packages.remove("awa")
    (installed.modules / "graphile-worker").rmdir()
    asked = parse(["--workload", "W3"])
    assert [one.peer.key for one in asked.comparisons] == ["pgqueuer", "procrastinate"]
    assert asked.missing == {
        "Graphile Worker": f"the npm package graphile-worker is not in {installed.modules}: make bench-peers-npm",
        "Awa": "the Python package awa is not installed: pip install -e '.[dev,peers]'   (make bench-peers does it)",
    }


def test_a_missing_peer_is_refused_if_it_is_requested(installed, capsys):
    installed.node = None
    with pytest.raises(SystemExit, match="2"):
        parse(["--peer", "graphile"])
    assert "Graphile Worker: there is no `node` on the PATH: install Node.js 18 or newer" in capsys.readouterr().err


def test_the_table_names_the_peer_and_the_slower_side(installed):
    by_key = {(one.workload.key, one.peer.key): one for one in COMPARISONS}
    outcomes = [
        Outcome(by_key["W3", "graphile"], 400, [3000.0, 2000.0], [2000.0, 2000.0], []),
        Outcome(by_key["W3", "awa"], 400, [1000.0], [2000.0], []),
        Outcome(by_key["W5", "graphile"], 100, [0.5], [1.0], []),
    ]
    _, *rows = lines(outcomes)
    assert [tuple(row[5:]) for row in rows] == [
        ("Graphile Worker", "1.25", "1.00 … 1.50", "ahead", "≥ 2 x", "✗"),
        ("Awa", "0.50", "0.50 … 0.50", "BEHIND", "≥ 1 x", "✗"),
        ("Graphile Worker", "0.50", "0.50 … 0.50", "ahead", "≤ 1 x", "✓"),
    ]
