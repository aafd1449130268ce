"""docs/guides/coming-from-ratchet.md: what it names exists, and what it calls planned does not."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import NamedTuple

import click
import pytest

import windlass
from tests.docs.pages import ROOT
from windlass import JobContext, JobHandle, JobOptions, Windlass, spi
from windlass.cli.main import main
from windlass.settings import SECTIONS
from windlass.submission.job_function import JobFunction
from windlass.worker import Worker

PAGE = ROOT / "docs" / "guides" / "coming-from-ratchet.md"
PACKAGE = ROOT / "src" / "windlass"
SCHEMA = "\n".join(path.read_text() for path in sorted((PACKAGE / "stores" / "sqlite" / "migrations").glob("*.sql")))


def has(holder: type, name: str) -> bool:
    return hasattr(holder, name) or (is_dataclass(holder) and name in {field.name for field in fields(holder)})


def public(name: str) -> bool:
    """`Backoff`, `Backoff.fixed`, `JobFunction.using`: exported, an extension point, or met without importing it."""
    first, _, rest = name.partition(".")
    met = {"JobFunction": JobFunction, "Worker": Worker}
    holder = met.get(first) or (getattr(windlass, first) if first in windlass.__all__ else getattr(spi, first, None))
    return holder is not None and (not rest or has(holder, rest))


def table(name: str) -> bool:
    """`windlass_hot`, `windlass_hot.due`: in the schema."""
    first, _, column = name.partition(".")
    made = re.search(rf"^CREATE TABLE {first} \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL)
    return made is not None and (not column or re.search(rf"^ +{column} ", made[1], re.MULTILINE) is not None)


def keyword(name: str) -> bool:
    """`max_retries=`, `retry_policy=`: an option of a job, or an argument of the application."""
    known = {option.name for option in fields(JobOptions)} | set(inspect.signature(Windlass).parameters)
    return name.rstrip("=") in known


def setting(name: str) -> bool:
    section, _, field = name.partition(".")
    return section in SECTIONS and field in SECTIONS[section].options()


def command(name: str) -> bool:
    group: click.Command | None = main
    for word in name.split()[1:]:
        group = group.get_command(click.Context(group), word) if isinstance(group, click.Group) else None
    return group is not None


FORMS: list[tuple[str, Callable[[str], bool]]] = [
    (r"@?app\.\w+", lambda name: has(Windlass, name.partition(".")[2])),
    (r"ctx\.\w+", lambda name: has(JobContext, name.partition(".")[2])),
    (r"handle\.\w+", lambda name: has(JobHandle, name.partition(".")[2])),
    (r"windlass_\w+(\.\w+)?", table),
    (r"windlass [a-z ]+", command),
    (r"[\w/]+\.py", lambda name: (PACKAGE / name).exists()),
    (r"\w+=", keyword),
    (r"@?[A-Z]\w+(\.\w+)?", public),
    (r"@\w+", lambda name: name.lstrip("@") in windlass.__all__),
    (r"(poller|node|jobs|dead_letters|circuits|pipelines)\.\w+", setting),
]
"""What a name in the middle column may look like, and how to check whether it exists."""


class Row(NamedTuple):
    """One line of a table that has names of ours in its middle column."""

    line: int
    there: str
    here: str


def rows() -> list[Row]:
    found: list[Row] = []
    heading: list[str] = []
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not heading or not cells:
            heading = cells
        elif heading[1] == "Windlass" and not set(cells[1]) <= {"-"}:
            found.append(Row(number, cells[0], cells[1]))
    return found


ROWS = rows()
PLANNED = [row for row in ROWS if row.here.startswith("*planned*: ")]
ABSENT = [row for row in ROWS if row.here == "—"]
PRESENT = [row for row in ROWS if row not in PLANNED and row not in ABSENT]


def names(row: Row) -> list[str]:
    return re.findall(r"`([^`]+)`", row.here)


def exists(name: str) -> bool:
    for form, check in FORMS:
        if re.fullmatch(form, name):
            return check(name)
    pytest.fail(f"{name}: no form that this test can check; add one to FORMS")


def test_the_tables_are_read():
    assert len(PRESENT) > 100
    assert len(PLANNED) + len(ABSENT) > 3


@pytest.mark.parametrize("row", PRESENT, ids=lambda row: f"line {row.line}")
def test_every_name_in_the_guide_exists(row: Row):
    assert names(row), "name what it is here, or mark it *planned*, or — with the reason"
    assert [name for name in names(row) if not exists(name)] == []


@pytest.mark.parametrize("row", PLANNED, ids=lambda row: f"line {row.line}")
def test_no_planned_name_exists_yet(row: Row):
    assert [name for name in names(row) if name != "python" and exists(name)] == [], "built by now: say so"


def test_missing_features_have_a_reason():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in ABSENT if lines[row.line - 1].endswith("| |")] == []
