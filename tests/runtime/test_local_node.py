"""The node of this process, as applications wake it."""

from collections.abc import Sequence

from windlass.runtime.local_node import LocalNode


class Recorder:
    """The calls that a node, or a coordinator, received."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        self.calls.append(("wake", list(work)))

    def look_again(self) -> None:
        self.calls.append("look again")

    def canceled(self, ids: Sequence[str]) -> None:
        self.calls.append(("canceled", list(ids)))

    def schedules_changed(self) -> None:
        self.calls.append("schedules")

    def notify_new_work(self, queue: str, priority: int) -> None:
        self.calls.append((queue, priority))

    def listen(self, callback: object) -> None:
        raise AssertionError("only nodes listen")

    def close(self) -> None:
        raise AssertionError("the parts close it")


WORK = [("billing", 5), ("mail", 0)]


def test_a_node_is_woken_while_it_is_there():
    local, node = LocalNode(None), Recorder()
    local.new_work(WORK)
    local.attach(node)
    local.new_work(WORK)
    local.changed()
    local.circuits_changed([])
    local.stop(["a"])
    local.detach()
    local.new_work(WORK)
    local.changed()
    local.stop(["b"])
    assert node.calls == [("wake", WORK), "look again", "look again", ("canceled", ["a"])]


def test_a_coordinator_is_notified_of_each_queue_whether_a_node_runs_here_or_not():
    coordinator = Recorder()
    LocalNode(coordinator).new_work(WORK)
    assert coordinator.calls == WORK
