"""`windlass worker --processes`: children that are kept alive, stopped, and never left behind."""

import os
import re
import signal

import pytest

from tests.cli.commands import SHOP, Command
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until
from windlass import JobStatus

EXITS = """

@app.job
def leave(code: int) -> None:
    os._exit(code)
"""
ENDS_AT_ONCE = """

import sys

if "--lifeline" in sys.argv:
    os._exit(0)
"""


def pids(command: Command, count: int) -> list[int]:
    """The process ids of the first nodes that got ready; a node's id is host, pid and a random part."""

    def ready() -> list[int]:
        found = re.findall(r"^ready: node \S+-(\d+)-\w+$", command.printed, re.MULTILINE)
        return [int(pid) for pid in found] if len(found) >= count else []

    return until(ready, f"{count} nodes to be ready")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_two_processes_share_the_work_and_drain_together(sqlite_commands, shop_on):
    """J7.6: the signal is passed on; exit code 0 when all drained."""
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2", "--concurrency", "2")
    children = pids(workers, 2)
    assert workers.printed.count("windlass 0") == 1, "one banner for all"
    assert "concurrency: 2 processes, 2 jobs at a time each" in workers.printed
    shop = shop_on(sqlite_commands.url)
    handles = [shop.enqueue("gated", number) for number in range(4)]
    until(lambda: len(list(sqlite_commands.folder.glob("started-*"))) == 4, "all four to run at once")
    workers.terminate()
    workers.says("draining")
    (sqlite_commands.folder / "gate").touch()
    assert workers.exit_code() == 0
    assert {handle.result(timeout=90) for handle in handles} == set(children)
    assert all(is_gone(pid) for pid in children)


def test_a_killed_child_is_restarted(sqlite_commands):
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    first, second = pids(workers, 2)
    os.kill(first, signal.SIGKILL)
    workers.says(r"worker \d was killed by SIGKILL unexpectedly after .* restarting it in 0\.5 s")
    third = pids(workers, 3)[2]
    assert third not in (first, second)
    workers.terminate()
    assert workers.exit_code() == 0
    assert is_gone(second)
    assert is_gone(third)


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_child_that_exits_without_a_request_is_restarted(sqlite_commands, shop_on, code: int):
    """J7.10, J7.4: a body that ends its process is charged with it until its budget is spent, whatever the code."""
    (sqlite_commands.folder / "shop.py").write_text(SHOP + EXITS)
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2", environ=SHORT_LEASES)
    pids(workers, 2)
    shop = shop_on(sqlite_commands.url)
    handle = shop.enqueue("leave", code)
    workers.says(rf"worker \d ended with code {code} unexpectedly after .*; restarting it in 0\.5 s")
    assert handle.join(timeout=90) is JobStatus.FAILED
    assert shop.app.get(handle.id).reason == "worker_lost"
    assert [attempt.outcome for attempt in shop.app.history(handle.id)] == ["lost"] * 4
    assert "charged 1" in shop.enqueue("charge", 1).result(timeout=90)
    workers.terminate()
    assert workers.exit_code() == 0


def test_pauses_between_restarts_grow(sqlite_commands):
    """J7.10: a worker that cannot stay up is not started over and over."""
    (sqlite_commands.folder / "shop.py").write_text(SHOP + ENDS_AT_ONCE)
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    for pause in (r"0\.5", r"1\.0", r"2\.0"):
        workers.says(rf"worker 1 ended with code 0 unexpectedly after .*; restarting it in {pause} s")
    workers.terminate()
    assert workers.exit_code() == 0


def test_children_drain_when_the_supervisor_is_killed(sqlite_commands):
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    children = pids(workers, 2)
    workers.kill()
    until(lambda: all(is_gone(pid) for pid in children), "the children to end")
    assert workers.printed.count("SIGTERM: draining") == 2


def test_a_second_signal_forces_all_of_them(sqlite_commands, shop_on):
    """J7.6: exit code 3."""
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    children = pids(workers, 2)
    shop_on(sqlite_commands.url).enqueue("gated", 1)
    until(lambda: list(sqlite_commands.folder.glob("started-*")), "a body to begin")
    workers.terminate()
    until(lambda: workers.printed.count("SIGTERM: draining") == 2, "both to have heard the first signal")
    until(lambda: sum(is_gone(pid) for pid in children) == 1, "the idle child to end")
    workers.terminate()
    assert workers.exit_code() == 3
    assert all(is_gone(pid) for pid in children)


def test_a_store_in_memory_cannot_be_shared(sqlite_commands):
    code, printed = sqlite_commands.run("worker", "shop:app", "-p", "2", environ={"WINDLASS_URL": "sqlite://"})
    assert code == 1
    assert "belongs to one process" in printed
