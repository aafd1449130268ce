"""docs/explain/guarantees.md and docs/reference/failpoints.md say what the code and its tests say."""

import subprocess
import sys

import pytest

from docs import generate_failpoints, generate_matrix
from docs.generated_parts import filled, names_in
from tests.docs.pages import ROOT
from windlass.runtime.failpoints import POINTS

pytestmark = pytest.mark.xdist_group("source")


def test_the_crash_matrix_is_what_the_generator_writes():
    page = generate_matrix.PAGE.read_text(encoding="utf-8")
    assert names_in(page) == ["matrix"]
    assert filled(page, generate_matrix.parts()) == page, "stale: run `make docs-matrix`"


def test_every_row_of_the_crash_matrix_is_proved_by_a_test_of_crashes():
    found = generate_matrix.named_by_row()
    assert set(found) == set(generate_matrix.ROWS), "rows without a test, or tests of rows that are not there"
    unproved = [row for row, files in found.items() if not any(file.startswith("tests/crash/") for file in files)]
    assert unproved == []


def test_every_link_of_the_crash_matrix_leads_to_a_test_that_exists():
    for row, files in generate_matrix.named_by_row().items():
        for file, names in files.items():
            text = (ROOT / file).read_text(encoding="utf-8")
            assert [name for name in names if f"def {name}(" not in text] == [], row


def test_the_page_of_failpoints_is_what_the_generator_writes():
    page = generate_failpoints.PAGE.read_text(encoding="utf-8")
    assert names_in(page) == ["points"]
    assert filled(page, generate_failpoints.parts()) == page, "stale: run `make docs-failpoints`"
    assert [name for name in POINTS if f"| `{name}` |" not in page] == []


def test_every_row_of_the_crash_matrix_is_proved_on_every_store():
    """P9: but C8, which needs a connection that can break: SQLite has none."""
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", "tests/crash"]
    variants = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    stores = {row: set[str]() for row in generate_matrix.ROWS}
    for row, files in generate_matrix.named_by_row().items():
        for file, names in files.items():
            tests = tuple(f"{file}::{name}[" for name in names)
            stores[row] |= {
                store for one in variants if one.startswith(tests) for store in ("sqlite", "postgres") if store in one
            }
    assert {row for row, found in stores.items() if found != {"sqlite", "postgres"}} == {"C8"}
