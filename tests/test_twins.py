"""Sync and async twins: a verb is written once, and each of its two faces is one statement that drives it."""

import ast
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.xdist_group("source")

SOURCE = Path(__file__).parent.parent / "src" / "windlass"

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

EXCEPTED = {
    "events/subscriber.py Caller.call": "calls a listener on a thread or on a loop",
    "pipelines/execution_handle.py ExecutionHandle.items": "an iterator, or an async one, over pages of one verb",
    "pipelines/item_streams.py ItemStream.__iter__": "an iterator for bodies on threads, and one for those on a loop",
    "pipelines/item_streams.py SingleStream.__iter__": "an iterator for bodies on threads, and one for those on a loop",
    "runtime/thread_service.py ThreadService.stop": "joins a thread",
    "runtime/verbs.py drive": "the drivers themselves",
    "stores/caller_transactions/runner.py CallerPlanRunner.run": "drives plans on connections of callers",
    "stores/caller_transactions/runner.py _play": "drives plans on connections of callers",
    "stores/postgres/database.py PostgresDatabase.notify": "has a time limit of its own on a loop",
    "stores/sqlite/dialect.py SqliteDatabase.read": "drives plans on this thread, or on one for a loop",
    "stores/sqlite/dialect.py SqliteDatabase.run": "drives plans on this thread, or on one for a loop",
    "stores/sqlite/writer.py Writer.run": "drives plans on the writer's thread",
    "submission/current_connection.py UsedConnection.__enter__": "sets a variable; its twin calls it",
    "submission/current_connection.py UsedConnection.__exit__": "sets a variable; its twin calls it",
    "testing/drain.py drain": "runs a node's loop, or runs on the caller's",
    "testing/inline.py _Drains.run": "runs a node's loop, or runs on the caller's",
    "worker.py Worker.__enter__": "has its loop on a thread, or runs on the caller's",
    "worker.py Worker.__exit__": "has its loop on a thread, or runs on the caller's",
    "worker.py Worker.drain": "waits for a node from another thread, or on its loop",
}
"""Twins with logic of their own, and what blocking and awaiting callers do differently there."""

OTHER_DRIVERS = {
    "stores/postgres/database.py PostgresDatabase.run": "one coroutine, by a thread's or a loop's connections"
}
"""Faces of what is written once that are driven in another way."""


class Twins(NamedTuple):
    name: str
    blocking: ast.FunctionDef
    awaiting: ast.AsyncFunctionDef


@cache
def twins() -> list[Twins]:
    """Functions and methods of one scope, `x` beside `async ax`."""
    return list(_find_twins())


def _find_twins() -> Iterator[Twins]:
    for path in sorted(SOURCE.rglob("*.py")):
        module = ast.parse(path.read_text(), filename=str(path))
        scopes: list[ast.Module | ast.ClassDef] = [module]
        scopes += (node for node in ast.walk(module) if isinstance(node, ast.ClassDef))
        for scope in scopes:
            defined = {
                node.name: node for node in scope.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            place = f"{path.relative_to(SOURCE)} {f'{scope.name}.' if isinstance(scope, ast.ClassDef) else ''}"
            for name, blocking in defined.items():
                awaiting = defined.get(twin_of(name))
                if isinstance(blocking, ast.FunctionDef) and isinstance(awaiting, ast.AsyncFunctionDef):
                    yield Twins(place + name, blocking, awaiting)


def twin_of(name: str) -> str:
    bare = name.lstrip("_")
    return f"{name[: len(name) - len(bare)]}a{bare}"


def statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    """Without the docstring, and without the `...` of a protocol."""
    return [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]


def is_face(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it only returns what one call gives: `return drive(…)`, `return await adrive(…)`, an element of it."""
    body = statements(function)
    if not body:
        return True  # a protocol's
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    value = body[0].value
    while isinstance(value, ast.Await | ast.Subscript):
        value = value.value
    return isinstance(value, ast.Call)


def test_no_twins_have_logic_of_their_own():
    found = {each.name for each in twins() if not (is_face(each.blocking) and is_face(each.awaiting))}
    assert found == EXCEPTED.keys(), "write the verb once, as a generator (windlass.runtime.verbs), and drive it"


def test_sync_and_async_twins_run_the_same_verb():
    """A pair of faces differs in `await` and in an `a` alone."""
    differing = {
        each.name: (ours, theirs)
        for each in twins()
        if each.name not in {**EXCEPTED, **OTHER_DRIVERS}
        and (ours := text(each.blocking)) != (theirs := text(each.awaiting))
    }
    assert differing == {}


def text(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Its statements as those of the blocking face."""
    return [ast.unparse(_Blocking().visit(deepcopy(node))) for node in statements(function)]


class _Blocking(ast.NodeTransformer):
    def visit_Await(self, node: ast.Await) -> ast.expr:
        call = node.value
        assert isinstance(call, ast.Call)
        function = call.func
        if isinstance(function, ast.Name):
            function.id = function.id.removeprefix("a")
        elif isinstance(function, ast.Attribute):
            function.attr = function.attr.removeprefix("a")
        return call


def test_twins_are_found():
    assert len(twins()) > 50
