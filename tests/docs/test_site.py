"""The site is built from these pages without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` builds, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "docs", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site(site: Path):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()


def test_every_link_inside_the_site_leads_somewhere(site: Path):
    broken = []
    for page in sorted(site.rglob("*.html")):
        for target in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            path = target.partition("#")[0].partition("?")[0]
            if "://" not in target and path and not (page.parent / path).exists():
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(site: Path):
    for page in sorted(site.rglob("*.html")):
        loaded = re.findall(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="([^"]+)"', page.read_text())
        assert [target for target in loaded if "://" in target] == [], page.relative_to(site)
