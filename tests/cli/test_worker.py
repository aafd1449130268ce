"""`windlass worker` as people run it: a banner, jobs, signals."""

import json
import logging

from tests.cli.commands import Commands
from tests.support.waiting import until
from windlass.cli import logs


def test_a_worker_shows_a_banner_runs_jobs_and_drains(commands, shop_on):
    """J7.6: SIGTERM drains; exit code 0."""
    commands.run("migrate", "shop:app")
    worker = commands.start("worker", "shop:app", "--concurrency", "5", "--queues", "default,billing")
    worker.says(r"^ready: node \S+$")
    for line in (
        r"^windlass \d",
        r"app: shop:app$",
        r"store: (SQLite|PostgreSQL) ",
        r"schema: current \(\d{4}_\w+\)$",
        r"queues: default, billing$",
        r"concurrency: 5 jobs at a time$",
        r"wakeups: \w+",
        r"targets: shop:charge, shop:endless, shop:gated$",
    ):
        worker.says(line)
    result = shop_on(commands.url).enqueue("charge", 42).result(timeout=90)
    assert result == f"charged 42 in {worker.pid}"
    worker.says(r"INFO +shop: charging 42  \[job \S+, attempt 1\]$")
    worker.terminate()
    assert worker.exit_code() == 0
    worker.says(r"SIGTERM: draining")


def test_a_module_of_include_that_is_missing_is_named(sqlite_commands):
    """J10.1: the worker does not start; exit code 1."""
    (sqlite_commands.folder / "core.py").write_text(
        f"from windlass import Windlass\napp = Windlass({sqlite_commands.url!r}, include=['core_tasks'])\n"
    )
    worker = sqlite_commands.start("worker", "core:app")
    assert worker.exit_code() == 1
    worker.says(r"include names 'core_tasks', and there is no module 'core_tasks' here")


def test_a_second_signal_forces(sqlite_commands, shop_on):
    """J7.6: exit code 3, and the job waits again with no attempt spent."""
    worker = sqlite_commands.start("worker", "shop:app")
    worker.says("^ready")
    shop = shop_on(sqlite_commands.url)
    handle = shop.enqueue("endless", "begun")
    until((sqlite_commands.folder / "begun").exists, "the body to begin")
    worker.terminate()
    worker.says("draining")
    worker.terminate()
    assert worker.exit_code() == 3
    job = shop.app.get(handle.id)
    assert (job.status.value, job.attempts) == ("PENDING", 0)


def test_drain_timeout_of_the_command_line_bounds_the_drain(sqlite_commands, shop_on):
    """J10.4: `--drain-timeout`; what a drain waits for and how it ended is in the log."""
    worker = sqlite_commands.start("worker", "shop:app", "--drain-timeout", "0.2")
    worker.says("^ready")
    shop = shop_on(sqlite_commands.url)
    handle = shop.enqueue("endless", "begun")
    until((sqlite_commands.folder / "begun").exists, "the body to begin")
    worker.terminate()
    assert worker.exit_code() == 3
    worker.says(r"draining: 1 job runs, waiting until \S+ \(0\.2 s; node\.drain_timeout\)")
    worker.says(r"drain forced: 0 of 1 running jobs finished, 1 stopped and released to run again")
    assert shop.app.get(handle.id).status.value == "PENDING"


def test_a_worker_serves_only_the_given_queues(sqlite_commands, shop_on):
    """J1.7."""
    worker = sqlite_commands.start("worker", "shop:app", "-q", "billing")
    worker.says("^ready")
    shop = shop_on(sqlite_commands.url)
    other = shop.enqueue("charge", 1)
    served = shop.enqueue("charge", 2, queue="billing")
    assert served.result(timeout=90).startswith("charged 2")
    assert other.status().value == "PENDING"


def test_a_server_must_have_been_migrated(folder, pg_url):
    commands = Commands(folder, pg_url)
    code, printed = commands.run("worker", "shop:app")
    assert code == 1
    assert "the schema lacks 0001_initial, " in printed
    assert "run `windlass migrate" in printed


def test_a_worker_with_nothing_allowed_refuses_to_start(sqlite_commands):
    """J6.3."""
    (sqlite_commands.folder / "empty.py").write_text("from windlass import Windlass\n\napp = Windlass()\n")
    code, printed = sqlite_commands.run("worker", "empty:app", "--processes", "2")
    assert code == 1
    assert "nothing allowed" in printed
    assert "@app.job" in printed


def test_log_lines_can_be_json(sqlite_commands):
    worker = sqlite_commands.start("worker", "shop:app", "--log-format", "json")
    worker.says("^ready")
    worker.terminate()
    assert worker.exit_code() == 0
    lines = [json.loads(line) for line in worker.printed.splitlines() if line.startswith("{")]
    assert any("draining" in line["message"] for line in lines)


def test_existing_logging_configuration_is_kept(caplog):
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    assert caplog.handler in before
    logs.set_up("debug", "text")
    assert (root.handlers, root.level) == (before, level)
