"""Every public error, event, option and extension point has its place in the documentation."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Protocol

import windlass
from tests.docs.pages import ROOT
from windlass import Event, JobOptions, spi

DOCS = ROOT / "docs"


def headings(page: Path) -> set[str]:
    """Names that a page has a heading for, as in "### `JobFailedError`"."""
    return set(re.findall(r"^#+ `(\w+)`$", page.read_text(encoding="utf-8"), re.MULTILINE))


def public_classes(base: type) -> set[str]:
    exported = {name: getattr(windlass, name) for name in windlass.__all__}
    return {value.__name__ for value in exported.values() if isinstance(value, type) and issubclass(value, base)}


def test_every_error_has_a_heading():
    assert headings(DOCS / "reference" / "errors.md") == public_classes(BaseException)


def test_the_tree_of_errors_names_them_all():
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    tree = page.partition("```text\n")[2].partition("```")[0]
    assert set(re.findall(r"^[├│└─ ]*(\w+)", tree, re.MULTILINE)) == public_classes(BaseException)


def test_every_event_has_a_heading_and_names_its_fields():
    page = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    assert headings(DOCS / "reference" / "events.md") == public_classes(Event)
    for name in public_classes(Event) - {"Event"}:
        section = page.partition(f"### `{name}`\n")[2].partition("\n#")[0]
        own = {field.name for field in fields(getattr(windlass, name))} - {field.name for field in fields(Event)}
        assert {field for field in own if f"`{field}`" not in section} == set(), f"fields of {name}"


def test_every_extension_point_is_explained():
    page = (DOCS / "reference" / "extension-points.md").read_text(encoding="utf-8")
    protocols = {name for name, value in vars(spi).items() if isinstance(value, type) and Protocol in value.__bases__}
    assert {name for name in protocols if f"`{name}`" not in page} == set()


def test_every_job_option_is_explained():
    page = (DOCS / "learn" / "enqueueing.md").read_text(encoding="utf-8")
    assert {option.name for option in fields(JobOptions) if f"| `{option.name}` |" not in page} == set()
