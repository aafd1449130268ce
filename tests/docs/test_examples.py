"""Every Python example of README.md and docs/ runs, as the program a reader would type."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, outputs, program

WITH_EXAMPLES = [page for page in PAGES if program(page)[1]]
LONGEST = 300


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run_as_one_program(page: Path, tmp_path: Path):
    """Also: they warn of nothing, and print what the page says."""
    name, text = program(page)
    file = tmp_path / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, f"{name_of(page)}, line numbers are those of the page:\n{done.stderr}"
    rest = done.stdout
    for expected in outputs(page):
        assert expected in rest, f"{name_of(page)} says that its program prints (in this order):\n{expected}"
        rest = rest.partition(expected)[2]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_that_are_not_run_have_a_reason(page: Path):
    """A block of Python is run, or is marked `python skip` below an HTML comment with the reason."""
    for block in blocks(page):
        kind, _, rest = block.info.partition(" ")
        if kind in ("python", "py", "python3", "pycon") and block.info != "python":
            where = f"{name_of(page)}:{block.line}"
            assert block.info == "python skip", f"{where}: write ```python, or ```python skip with a reason above"
            assert block.before.endswith("-->"), f"{where}: an HTML comment just above must say why it is skipped"
        assert kind != "" or rest == "", f"{name_of(page)}:{block.line}: name the language of the block"
