"""The guide to testing is followed to the letter: its files are written, and pytest is run on them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "testing.md"
_NAMED = re.compile(r"# (?P<name>\w+\.(py|toml))\n")
ASYNC_MODE = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")


def files(page: Path) -> dict[str, str]:
    """The files of a page: a block begins one by naming it, or goes on with the one before."""
    texts: dict[str, str] = {}
    name = ""
    for block in blocks(page):
        if block.info in ("python", "toml"):
            named = _NAMED.match(block.body)
            name = named["name"] if named else name
            texts[name] = texts.get(name, "") + block.body
    return texts


def test_the_tests_of_the_guide_pass(tmp_path: Path):
    """api.md Testing."""
    texts = files(GUIDE)
    assert list(texts) == ["shop.py", "pyproject.toml", "test_shop.py"]
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "WINDLASS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *ASYNC_MODE],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    written = len(re.findall(r"^(?:async )?def test_", texts["test_shop.py"], re.MULTILINE))
    assert f"{written} passed" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "shop.db").exists()
