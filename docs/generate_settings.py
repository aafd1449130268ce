"""Writes the tables of docs/reference/settings.md from the settings classes: `make docs-settings`."""

import ast
import inspect
import sys
from enum import Enum
from pathlib import Path

from docs.generated_parts import write_page
from windlass.settings import SECTIONS
from windlass.settings.option import Section

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "settings.md"


def parts() -> dict[str, str]:
    """What to write into the page, by section."""
    return {name: _section(kind) for name, kind in SECTIONS.items()}


def _section(kind: type[Section]) -> str:
    meanings = _attribute_docstrings(kind)
    rows = [
        f"| `{name}` | `{_shown(option.default)}` | {option.allowed} | {meanings[name]} |"
        for name, option in kind.options().items()
    ]
    heading = ["| field | default | accepts | meaning |", "|---|---|---|---|"]
    return "\n".join([str(inspect.getdoc(kind)), "", *heading, *rows])


def _attribute_docstrings(kind: type) -> dict[str, str]:
    """The text that follows each field in the source: Python itself does not keep it."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for node, following in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found[node.target.id] = str(following.value.value)
    return found


def _shown(value: object) -> str:
    """A default as one would write it in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Enum):
        return f'"{value.name.lower()}"'
    return str(value)


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
