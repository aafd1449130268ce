"""The parts of a running node: each knows those below it, and none of them knows the way back up."""

import ast
import asyncio
import threading
import types
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import windlass
from tests.engine import jobs
from tests.engine.apps import Apps
from windlass import Windlass
from windlass.engine.attempt import Attempt
from windlass.node import Node
from windlass.runtime.local_node import LocalNode
from windlass.runtime.service import Service
from windlass.runtime.thread_service import ThreadService
from windlass.stores.postgres.database import PostgresDatabase
from windlass.stores.sqlite.dialect import SqliteDatabase

OPAQUE = (str, bytes, int, float, type, types.ModuleType, asyncio.AbstractEventLoop, asyncio.Future, threading.Thread)
"""What holds no parts of ours, or runs them: a task knows the service whose coroutine it is."""
OUTSIDE = (Windlass, LocalNode, Attempt, SqliteDatabase, PostgresDatabase)
"""What is not a part of a node: the application and its way to the node it runs, the attempts that pass through, and
the store, to whose notifications the node has subscribed."""


def test_services_of_a_node_form_no_cycle(apps: Apps):
    """J4.1: a part that reached back up would have to be given its collaborator after it was made."""
    app = apps()
    app.job(jobs.note)
    with app.worker() as worker:
        assert worker.node is not None
        cycles = [names(group) for group in strong_components(worker.node) if len(services(group, worker.node)) > 1]
    assert cycles == []


def test_a_cycle_would_be_found():
    class Upper(Service):
        async def tick(self) -> float | None:
            return None

    upper = Upper("upper")
    upper.lower = lower = Upper("lower")  # type: ignore[attr-defined]
    assert not any(len(group) > 1 for group in strong_components(upper, here=True))
    lower.back = partial(print, upper.wake)  # type: ignore[attr-defined]
    (group,) = (group for group in strong_components(upper, here=True) if len(group) > 1)
    assert names(group) == ["Upper", "Upper"]


PACKAGE = Path(windlass.__file__).parent
WIRED = ("engine", "failure", "flow", "maintenance", "recurring", "resilience")
CARRIED = {
    "attempt": "an attempt gathers what becomes of it",
    "attempt.thread": "what its body does on a thread is a part of it",
    "thread": "the same",
    "deadline": "when an attempt is looked at next",
    "context": "the job's context ends with its body",
    "report": "what a body says of itself",
    "line.report": "the same",
    "record": "a log record",
    "timeout": "an exception, and its cause",
    "work": "the node's outlook is exchanged as one value",
    "self._work": "the same",
    "self._room": "counted by the slots alone",
}
"""What is no part but passes through them, or holds their one changing value: its attributes may be set by others."""


def test_no_part_has_an_attribute_set_by_another():
    """J4.1: collaborators are given to a part when it is made."""
    folders = [path for folder in WIRED for path in (PACKAGE / folder).glob("*.py")]
    found = {
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in [*folders, *PACKAGE.glob("node*.py"), *PACKAGE.glob("app*.py"), PACKAGE / "publisher.py"]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if ast.unparse(node.value) not in {"self", *CARRIED}
    }
    assert found == set()


def services(group: Collection[object], node: Node) -> list[object]:
    """The services of a group, and whatever else the node or its engine holds by name."""
    named = [*vars(node).values(), *vars(node.engine).values(), *vars(node.membership).values()]
    return [
        part for part in group if isinstance(part, Service | ThreadService) or any(part is other for other in named)
    ]


def names(group: Collection[object]) -> list[str]:
    return sorted(type(part).__name__ for part in group)


def referred(value: object) -> Iterator[object]:
    """What a value refers to, as far as parts of ours may be reached by it."""
    match value:
        case dict():
            yield from value.keys()
            yield from value.values()
        case list() | tuple() | set() | frozenset():
            yield from value
        case partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case types.MethodType():
            yield value.__self__
        case types.FunctionType():
            yield from (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
            yield from value.__defaults__ or ()
        case _ if _is_part(value, here=True):
            yield from vars(value).values() if hasattr(value, "__dict__") else ()
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            yield from (getattr(value, name) for name in slots if hasattr(value, name))


def parts_of(part: object, *, here: bool) -> list[object]:
    """The parts that a part refers to, through containers and functions of any depth."""
    found: list[object] = []
    seen = {id(part)}
    waiting = list(referred(part))
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (*OPAQUE, *OUTSIDE)):
            continue
        seen.add(id(value))
        if _is_part(value, here=here):
            found.append(value)
        else:
            waiting.extend(referred(value))
    return found


def strong_components(root: object, *, here: bool = False) -> list[list[object]]:
    """Groups of parts that can all reach each other: Tarjan's algorithm."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[object] = []
    groups: list[list[object]] = []

    def visit(part: object) -> None:
        index[id(part)] = low[id(part)] = len(index)
        stack.append(part)
        for other in parts_of(part, here=here):
            if id(other) not in index:
                visit(other)
                low[id(part)] = min(low[id(part)], low[id(other)])
            elif any(other is waiting for waiting in stack):
                low[id(part)] = min(low[id(part)], index[id(other)])
        if low[id(part)] == index[id(part)]:
            group: list[object] = []
            while not group or group[-1] is not part:
                group.append(stack.pop())
            groups.append(group)

    visit(root)
    return groups


def _is_part(value: Any, *, here: bool) -> bool:
    module = type(value).__module__
    return module.startswith("windlass.") or (here and module == __name__)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
