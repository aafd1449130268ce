"""`windlass worker --processes`: children that are kept alive, told to stop, and never left behind."""

import os
import re
import signal

from tests.cli.commands import Command
from tests.support.waiting import until


def pids(command: Command, count: int) -> list[int]:
    """The process ids of the first nodes that got ready; a node's id is host, pid and a random part."""

    def ready() -> list[int]:
        found = re.findall(r"^ready: node \S+-(\d+)-\w+$", command.said, re.MULTILINE)
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
    assert workers.said.count("windlass 0") == 1, "one banner for all"
    assert "concurrency: 2 processes, 2 jobs at a time each" in workers.said
    shop = shop_on(sqlite_commands.url)
    handles = [shop.enqueue("gated", number) for number in range(4)]
    until(lambda: len(list(sqlite_commands.folder.glob("started-*"))) == 4, "all four to run at once")
    workers.terminate()
    workers.says("draining")
    (sqlite_commands.folder / "gate").touch()
    assert workers.exit_code() == 0
    assert {handle.result(timeout=10) for handle in handles} == set(children)
    assert all(is_gone(pid) for pid in children)


def test_a_child_that_dies_is_started_again(sqlite_commands):
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    first, second = pids(workers, 2)
    os.kill(first, signal.SIGKILL)
    workers.says(r"worker \d was killed by SIGKILL after .* restarting it in 0\.5 s")
    third = pids(workers, 3)[2]
    assert third not in (first, second)
    workers.terminate()
    assert workers.exit_code() == 0
    assert is_gone(second)
    assert is_gone(third)


def test_children_drain_when_the_supervisor_is_killed(sqlite_commands):
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    children = pids(workers, 2)
    workers.kill()
    until(lambda: all(is_gone(pid) for pid in children), "the children to end")
    assert workers.said.count("draining") == 2


def test_a_second_signal_forces_all_of_them(sqlite_commands, shop_on):
    """J7.6: exit code 3."""
    workers = sqlite_commands.start("worker", "shop:app", "--processes", "2")
    children = pids(workers, 2)
    shop_on(sqlite_commands.url).enqueue("gated", 1)
    until(lambda: list(sqlite_commands.folder.glob("started-*")), "a body to begin")
    workers.terminate()
    until(lambda: workers.said.count("draining") == 2, "both to have heard the first signal")
    until(lambda: sum(is_gone(pid) for pid in children) == 1, "the idle child to end")
    workers.terminate()
    assert workers.exit_code() == 3
    assert all(is_gone(pid) for pid in children)


def test_a_store_in_memory_cannot_be_shared(sqlite_commands):
    code, said = sqlite_commands.run("worker", "shop:app", "-p", "2", environ={"WINDLASS_URL": "sqlite://"})
    assert code == 1
    assert "belongs to one process" in said
