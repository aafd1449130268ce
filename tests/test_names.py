"""The names of modules, classes, functions and parameters: words of the glossary, and one meaning for each name."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.xdist_group("source")

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "windlass"
GLOSSARY = ROOT / "docs" / "explain" / "glossary.md"

ORDINARY = {
    "ending": "a noun: how something ends",
    "handling": "error handling is what every reader calls it",
    "lingering": "an adjective: bodies that outlive their jobs",
    "polling": "the strategy is called so by the public API",
    "recurring": "an adjective: work that recurs, named so by the public API",
    "setting": "a noun",
    "string": "a noun",
    "testing": "where a reader looks for a test kit",
    "waiting": "an adjective: a job that waits",
}
"""Words that end in -ing and are no gerunds in our names."""

PUBLIC = {"JobRetrying": "an event of the public API, named after its state"}

TOPIC = "one topic, in layers that each do their part of it"
COMMANDS = "each group of commands has one"
PAIRED_MODULES = {
    "batch": "the command, the value of progress, and the value to be stored",
    "batches": TOPIC,
    "callbacks": TOPIC,
    "circuit": "the command, and the value",
    "circuits": TOPIC,
    "client": "the package, and its entrance",
    "cluster": TOPIC,
    "command": COMMANDS,
    "connections": "pooled ones, and those of callers",
    "dead_letters": TOPIC,
    "drain": "of a node, and of a test's application",
    "errors": "those of users, and how they leave a job's process",
    "execution": "the commands, and the values",
    "execution_progress": "the value, and what is read for it",
    "executions": TOPIC,
    "explain": COMMANDS,
    "filters": "of the command line, and of the client",
    "forks": "a fork of the process, and what a SQLite file must not survive",
    "health": "the command, and the report",
    "job": "the commands, and the value",
    "jobs": TOPIC,
    "limits": TOPIC,
    "list_command": COMMANDS,
    "logs": "a command's options, and a log formatter",
    "publication": "the command, and the values",
    "migrate": "the command, and the runner of migrations",
    "moves": TOPIC,
    "node": "the command, and the node",
    "pipeline": "the command, and the declaration",
    "processes": "of a benchmark, and of process jobs",
    "reads": TOPIC,
    "redrive": COMMANDS,
    "redrives": TOPIC,
    "reject": "the commands, and the value",
    "reject_redrives": TOPIC,
    "rejects": TOPIC,
    "runner": "of an attempt, and of plans on a caller's connection",
    "schedules": TOPIC,
    "show": COMMANDS,
    "sqlite": "what users import, and the store",
    "worker": "the command, and the worker",
}
"""Modules of one name in several packages, and why; those of the contract suite and of one database mirror others."""

PAIRED_CLASSES = {
    "Ended": "a job, and a supervised process",
    "Every": "an interval of a schedule, and of a duty",
    "Attempt": "the public record of an attempt, and the engine's running one",
    "Drained": "results of two drains, of a test and of a benchmark",
    "LogLine": "the public record, and the message that carries one out of a job's process",
    "Node": "the public record of a node, and the running node",
    "Raised": "an outcome, and the message that carries it out of a job's process",
    "Returned": "an outcome, and the message that carries it out of a job's process",
    "Snoozed": "an outcome, and the message that carries it out of a job's process",
    "Reporter": "the protocol, and its side in a job's process",
    "Signal": "the public value that a waiting job gets, and what a service reports to tests",
}
"""Classes of one name in several modules, and why, or what becomes of them."""

OTHER_NAMES = {
    "_leave": "a wave leaves its rest to an operation",
    "_leave_cancels": "the same, for followers to cancel",
    "by_whom": "a column of the database",
    "words": "an attribute of the public `TriageRule`",
}
"""Names of functions, parameters and attributes that contain a refused word, and why."""


class Name(NamedTuple):
    """A module, a class or a function: its last part, and where it is, as a dotted path below the package."""

    last: str
    path: str


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_names() -> list[Name]:
    return [Name(path.rpartition(".")[2], path) for path in map(dotted, modules()) if path]


@cache
def class_names() -> list[Name]:
    return [
        Name(node.name, f"{dotted(path)}.{node.name}")
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]


@cache
def other_names() -> list[Name]:
    """The names of functions, parameters, variables and attributes, but for those of tests, which are sentences."""
    return [
        Name(name, f"{dotted(path)}.{name}")
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (name := bound_name(node)) and not name.startswith("test_")
    ]


def bound_name(node: ast.AST) -> str:
    """The name that a node gives to a function, a parameter, a variable or an attribute; empty if it gives none."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
    return ""


def words(name: str) -> list[str]:
    """The words of a name of either form, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def refused() -> set[str]:
    """The words that the glossary refuses."""
    found = re.search(r"^```text refused\n(.*?)^```", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, "docs/explain/glossary.md lists the words between ```text refused and ```"
    return set(re.findall(r"\w+", found[1]))


def objection(name: str, banned: set[str]) -> str:
    """What is wrong with the words of a name; empty if nothing."""
    for word in words(name):
        if word in banned:
            return f"{word!r} is refused by the glossary"
        if word.endswith("ing") and word not in ORDINARY and name not in PUBLIC:
            return f"{word!r} is a gerund"
    return ""


def shared(names: list[Name]) -> dict[str, list[str]]:
    """Where names stand that stand in more than one place."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        places[name.last].append(name.path)
    return {last: paths for last, paths in places.items() if len(paths) > 1}


def is_mirror(path: str) -> bool:
    """A module that has the name of its counterpart on purpose: a part of the contract, or one database's own part."""
    return path.startswith(("testing.contract.", "stores.postgres.", "stores.sqlite."))


def test_module_and_class_names_are_nouns_of_the_glossary():
    banned = refused()
    wrong = {name.path: text for name in module_names() + class_names() if (text := objection(name.last, banned))}
    assert wrong == {}, "name the thing by the word of its own page: docs/explain/glossary.md"


def test_other_names_have_no_refused_words():
    banned = refused()
    found = {name.last: name.path for name in other_names() if banned.intersection(words(name.last))}
    wrong = {last: path for last, path in found.items() if last not in OTHER_NAMES}
    assert wrong == {}, "use the word of the glossary: docs/explain/glossary.md; or give a reason in OTHER_NAMES"
    assert OTHER_NAMES.keys() - found.keys() == set(), "no such name is left: take it off the list"


def test_modules_of_one_name_are_listed_with_a_reason():
    found = set(shared([name for name in module_names() if not is_mirror(name.path)]))
    assert found - set(PAIRED_MODULES) == set(), "another name, or a reason why both have it"
    stale = set(PAIRED_MODULES) - set(shared(module_names()))
    assert stale == set(), "they have one meaning now: take them off the list"


def test_classes_of_one_name_are_listed_with_a_reason():
    found = shared(class_names())
    assert set(found) - set(PAIRED_CLASSES) == set(), f"another name, or a reason: {found}"
    assert set(PAIRED_CLASSES) - set(found) == set(), "they have one meaning now: take them off the list"


def test_names_are_split_into_their_words():
    assert words("PermitReleaser") == ["permit", "releaser"]
    assert words("_URLPart") == ["url", "part"]
    assert words("thread_watch") == ["thread", "watch"]


def test_names_of_functions_parameters_variables_and_attributes_are_found():
    source = "async def tell(word, *said, who=1):\n    self.place = told = other.heard"
    found = {bound_name(node) for node in ast.walk(ast.parse(source))}
    assert found == {"", "tell", "word", "said", "who", "place", "told"}


def test_gerunds_and_refused_words_are_objected_to():
    banned = refused()
    assert objection("WordCount", banned) == "'word' is refused by the glossary"
    assert objection("Looking", banned) == "'looking' is a gerund"
    assert objection("PermitReleaser", banned) == objection("PollingStrategy", banned) == ""
