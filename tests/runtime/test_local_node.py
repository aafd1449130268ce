"""The node of this process, as applications wake it."""

from collections.abc import Sequence

from windlass.runtime.local_node import LocalNode


class Heard:
    """The calls that a node, or a coordinator, received."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        self.told.append(("wake", list(work)))

    def look_again(self) -> None:
        self.told.append("look again")

    def canceled(self, ids: Sequence[str]) -> None:
        self.told.append(("canceled", list(ids)))

    def schedules_changed(self) -> None:
        self.told.append("schedules")

    def notify_new_work(self, queue: str, priority: int) -> None:
        self.told.append((queue, priority))

    def listen(self, callback: object) -> None:
        raise AssertionError("only nodes listen")

    def close(self) -> None:
        raise AssertionError("the parts close it")


WORK = [("billing", 5), ("mail", 0)]


def test_a_node_is_woken_while_it_is_there():
    local, node = LocalNode(None), Heard()
    local.new_work(WORK)
    local.enter(node)
    local.new_work(WORK)
    local.changed()
    local.circuits_changed([])
    local.stop(["a"])
    local.leave()
    local.new_work(WORK)
    local.changed()
    local.stop(["b"])
    assert node.told == [("wake", WORK), "look again", "look again", ("canceled", ["a"])]


def test_a_coordinator_is_notified_of_each_queue_whether_a_node_runs_here_or_not():
    coordinator = Heard()
    LocalNode(coordinator).new_work(WORK)
    assert coordinator.told == WORK
