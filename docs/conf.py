"""How Sphinx builds the site: `make docs` writes it to docs/_build/html.

The pages are plain Markdown that GitHub shows as well: links are relative to the file, and only the trees of pages, in
index.md and its like, need a directive.
"""

import re
import runpy
from pathlib import Path

from sphinx.application import Sphinx

_VERSION = Path(__file__).parents[1] / "src" / "windlass" / "_version.py"

project = "Windlass"
project_copyright = "the Windlass authors"
version = release = runpy.run_path(str(_VERSION))["__version__"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
highlight_language = "text"

myst_heading_anchors = 4
"""Headings get the anchors that GitHub gives them."""

nitpicky = True
html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"Windlass {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0f5f74",
        "color-brand-content": "#0f6f88",
        "color-brand-visited": "#0f6f88",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5cc3dc",
        "color-brand-content": "#5cc3dc",
        "color-brand-visited": "#5cc3dc",
    },
}

_BESIDE_README = re.compile(r"\]\((?:\.\./)+(CONTRIBUTING|CHANGELOG|SECURITY)\.md")


def lead_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files beside the README lead to the pages that include them."""
    del app, name
    source[0] = _BESIDE_README.sub(lambda found: f"](/{found[1].lower()}.md", source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", lead_to_pages)
