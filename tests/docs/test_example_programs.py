"""The programs of `examples/` that need no web server print what they say they print."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name", ["order_and_job", "retries", "pipeline_orders"])
def test_a_program_prints_what_its_docstring_says(name: str, tmp_path: Path):
    file = EXAMPLES / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    expected = [line.strip() for line in docstring.splitlines() if line.startswith("    ")]
    command = [sys.executable, "-W", "error", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
