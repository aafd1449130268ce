"""docs/operate/runbook.md, section 5: work that is due, and workers that do not take it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import Commands
from tests.docs.pages import ROOT
from tests.operate.runbook import Runbook
from tests.operate.shop import Bank, Shop
from tests.support.facts import rows
from tests.support.freezing import freeze_between_writes
from tests.support.programs import SHORT_LEASES, STEADY_LEASES
from tests.support.waiting import until
from windlass import ExecutionHandle, ExecutionStatus, Settings, Windlass

HEALTH = "windlass health"
NODES = "windlass node list"
QUEUES = "windlass queue list"
EXPLAIN = "windlass execution explain ID"
RUNNING = "windlass job list --status running"
STRANDED = "windlass execution list --stranded"
MOVE = "windlass execution redrive ID --to-version VERSION"
LONG_AGO = 7_200_000_000


@pytest.fixture
def commands(runbook: Runbook) -> Iterator[Commands]:
    """Worker processes of the application of the runbook."""
    started = Commands(Path.cwd(), runbook.url)
    yield started
    started.close()


def why(runbook: Runbook, run: ExecutionHandle) -> str:
    return runbook.says(EXPLAIN, ID=run.id)


def ends(shop: Shop, run: ExecutionHandle) -> ExecutionStatus:
    with shop.app.worker():
        return run.join(timeout=90)


def test_a_stopped_worker_is_found_and_another_one_does_its_work(
    runbook: Runbook, shop: Shop, bank: Bank, commands: Commands
):
    """P10.2: health exits with 1 and says why; a new worker starts what was due, and its lag is seen."""
    bank.open()
    environ = {"PYTHONPATH": str(ROOT), **SHORT_LEASES}
    stopped = commands.start("worker", "office:app", environ=environ)
    until(lambda: runbook.run(HEALTH).exit_code == 0, "a healthy worker")
    until(lambda: freeze_between_writes(stopped, runbook.url), "it to be stopped between two writes")
    until(lambda: runbook.run(HEALTH).exit_code == 1, "the end of its lease")
    assert "no worker is alive" in runbook.run(HEALTH).output
    assert runbook.lines(NODES)[0][1] == "lost"
    (run,) = shop.pipelines["payments"].submit_many([7])
    assert why(runbook, run).startswith("no_worker: no worker is alive")
    commands.start("worker", "office:app", environ={**environ, **STEADY_LEASES})
    assert run.result(timeout=90) == "7 paid"
    until(lambda: "dispatch lag" in runbook.run(HEALTH).output, "a heartbeat after the claim")
    assert bank.keys == [f"{run.id}:1"]


def test_a_sweeper_that_does_not_pass_is_named_until_another_worker_takes_over(runbook: Runbook, shop: Shop):
    """P10.1, P10.2: the age of its last pass; the duty is free once the node that holds it is gone."""
    with shop.app.worker():
        until(lambda: shop.app.health().sweeper_age is not None, "the first pass")
        until(lambda: "swept" in runbook.run(HEALTH).output, "a healthy worker")
        rows(
            runbook.url,
            "INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state) "
            f"SELECT 'stuck', host, pid, version, started_at - {LONG_AGO}, heartbeat_at, {10**17}, state "
            "FROM windlass_node",
        )
        rows(
            runbook.url,
            f"UPDATE windlass_lease SET holder = 'stuck', until = {10**17}, fence = fence + 1, "
            f"passed_at = passed_at - {LONG_AGO} WHERE name = 'sweeper'",
        )
        until(lambda: "their sweeper does not pass" in runbook.run(HEALTH).output, "a live worker beside it")
        assert runbook.run(HEALTH).exit_code == 1
        rows(runbook.url, "UPDATE windlass_node SET lease_until = 0 WHERE id = 'stuck'")
        until(lambda: runbook.run(HEALTH).exit_code == 0, "a pass of another worker's sweeper")


def test_a_definition_that_no_worker_has_waits_for_one_that_has_it(runbook: Runbook, shop: Shop, bank: Bank):
    """P1.4, P10.2: it is left alone, and explain names the definition."""
    bank.open()
    (run,) = shop.pipelines["payments"].submit_many([7])
    other = Windlass(runbook.url, allow=["elsewhere"], settings=Settings())
    with other.worker():
        until(lambda: why(runbook, run).startswith("stranded:"), "a worker that passes it over")
        assert "it waits for a worker that has that very definition" in why(runbook, run)
        assert run.status() is ExecutionStatus.QUEUED
    other.close()
    assert ends(shop, run) is ExecutionStatus.SUCCEEDED


def test_a_stranded_execution_is_moved_to_another_version(runbook: Runbook, shop: Shop):
    """P1.4, P10.2: listed, explained, moved, done."""
    before = Windlass(runbook.url, settings=Settings())
    labels = before.pipeline("labels", version="1")
    labels.step(name="print_old")(str.upper)
    run = labels.submit("tea")
    before.close()
    assert [line[0] for line in runbook.lines(STRANDED)] == [str(run.id)]
    assert why(runbook, run).startswith("stranded: it was begun with definition")
    assert "re-driven" in runbook.says(MOVE, "--yes", ID=run.id, VERSION="2")
    moved = shop.app.executions.handle(run.id)
    assert ends(shop, moved) is ExecutionStatus.SUCCEEDED
    assert moved.result() == "label: tea"


def test_a_paused_queue_is_resumed(runbook: Runbook, shop: Shop, bank: Bank):
    """P10.2: queue list and explain name it."""
    bank.open()
    (run,) = shop.pipelines["payments"].submit_many([7])
    assert shop.app.pause_queue("default")
    assert runbook.lines(QUEUES)[0][:3] == ["default", "paused", "1"]
    with shop.app.worker():
        assert why(runbook, run).startswith("queue_paused: queue default is paused")
        assert runbook.says("windlass queue resume QUEUE", QUEUE="default") == "queue default is resumed\n"
        assert run.result(timeout=90) == "7 paid"


def test_an_open_circuit_is_closed_once_the_service_answers(runbook: Runbook, shop: Shop, bank: Bank):
    """P4.3, P10.2: what waits behind it spends no attempts."""
    shop.app.configure_circuit("bank", minimum_calls=1, window=1, open_wait=3600)
    (run,) = shop.pipelines["transfers"].submit_many([7])
    with shop.app.worker():
        until(lambda: [line[1] for line in runbook.lines("windlass circuit list")] == ["open"], "a call that fails")
        until(lambda: why(runbook, run).startswith("circuit_open: the circuit of bank is open"), "its retry")
        assert shop.app.executions.get(run.id).attempt == 2
        bank.open()
        assert runbook.says("windlass circuit close SERVICE", SERVICE="bank") == "circuit bank is closed\n"
        assert run.result(timeout=90) == 7
    assert shop.app.executions.history(run.id)[-1].attempt == 2


def test_a_limit_that_holds_work_back_is_named(runbook: Runbook, shop: Shop):
    """P10.2: by explain and resource list; here it lets nothing through."""
    shop.app.configure_resource("press", 0)
    (run,) = shop.pipelines["prints"].submit_many(["tea"])
    with shop.app.worker():
        until(lambda: "resource press" in why(runbook, run), "its arrival in the lane")
        assert runbook.lines("windlass resource list")[0][0] == "press"
        shop.app.configure_resource("press", 1)
        assert run.result(timeout=90) == "tea printed"


def test_a_worker_without_a_free_slot_shows_what_blocks_it(runbook: Runbook, shop: Shop, bank: Bank):
    """P10.2: node list says how many run, job list which."""
    bank.open()
    bank.answers.clear()
    with shop.app.worker(concurrency=1):
        (blocking,) = shop.pipelines["payments"].submit_many([1])
        until(lambda: bank.keys, "a call that gets no answer")
        (run,) = shop.pipelines["payments"].submit_many([7])
        until(lambda: runbook.lines(NODES)[0][2] == "1", "a heartbeat")
        until(lambda: [line[0] for line in runbook.lines(RUNNING)] == [str(blocking.id)], "the one that blocks")
        until(lambda: run.status() is ExecutionStatus.QUEUED, "its return to the queue, if it was claimed early")
        bank.answers.set()
        assert run.result(timeout=90) == "7 paid"


def test_a_job_that_waits_for_its_retry_is_not_due(runbook: Runbook, shop: Shop):
    """P10.2: explain shows the error, and until when."""
    shop.app.configure_resource("press", 1)
    (run,) = shop.pipelines["prints"].submit_many(["broken"])
    with shop.app.worker():
        until(lambda: run.status() is ExecutionStatus.WAIT_RETRY, "its first failure")
        reason = why(runbook, run)
    assert reason.startswith(
        "waiting_for_retry: it waits for attempt 2 of step press, attempt 1 failed: ValueError: jam"
    )
    assert ", until 20" in reason
