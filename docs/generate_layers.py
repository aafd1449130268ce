"""Draws the layers of CONTRIBUTING.md from the import contracts of pyproject.toml: `make docs-layers`.

What a module is for is the first line of its docstring. What a contract names and the package does not have yet stands
in brackets.
"""

import ast
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.generated_parts import write_page

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
WIDTH = 120

Layers = list[list[str]]
"""From the top down; modules of one layer do not import each other."""


def contracts(root: Path = ROOT) -> dict[str, Layers]:
    """The layers of each package that has a contract of this kind."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {
        package: [_members(layer) for layer in contract["layers"]]
        for contract in settings["contracts"]
        if contract["type"] == "layers"
        for package in contract["containers"]
    }


def _members(layer: str | Mapping[str, Any]) -> list[str]:
    names = layer.split("|") if isinstance(layer, str) else layer["modules"]
    return [name.strip().strip("()") for name in names]


def source(package: str, module: str, root: Path = ROOT) -> Path | None:
    """The file of a module or package; None while it is planned."""
    folder = root / "src" / Path(*package.split("."))
    return next((path for path in (folder / f"{module}.py", folder / module / "__init__.py") if path.exists()), None)


def purpose(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def picture(package: str, layers: Layers, root: Path = ROOT) -> str:
    """One line for each module, brackets around those of one layer."""
    return "\n".join(["```text", *(line for layer in layers for line in _lines(package, layer, root)), "```"])


def _lines(package: str, layer: list[str], root: Path) -> Iterator[str]:
    files = {module: source(package, module, root) for module in layer}
    rows = [(module, purpose(path)) for module, path in files.items() if path is not None]
    if planned := [f"({module})" for module, path in files.items() if path is None]:
        rows.append((" ".join(planned), "planned"))
    edges = [" "] if len(rows) == 1 else ["┌", *"│" * (len(rows) - 2), "└"]
    for edge, (name, text) in zip(edges, rows, strict=True):
        start = f"{edge} {name:<14} "
        yield start + _cut(text, WIDTH - len(start))


def _cut(text: str, room: int) -> str:
    """A sentence without its full stop, and without the clauses that do not fit."""
    text = text.removesuffix(".")
    while len(text) > room and (mark := max(text.rfind(sign) for sign in (": ", "; ", ", ", ". "))) > 0:
        text = text[:mark]
    return text


def order(package: str, layers: Layers, root: Path = ROOT) -> str:
    """The modules of a package in one paragraph, from the top down."""
    there = [[module for module in layer if source(package, module, root)] for layer in layers]
    text = " ▸ ".join(", ".join(layer) for layer in there if layer)
    name = package.partition(".")[2]
    return textwrap.fill(text, WIDTH, initial_indent=f"{name:<14} ", subsequent_indent=" " * 15, break_on_hyphens=False)


def parts(root: Path = ROOT) -> dict[str, str]:
    """What to write into the page."""
    (top, layers), *others = contracts(root).items()
    paragraphs = [order(package, inner, root) for package, inner in others]
    return {"layers": picture(top, layers, root), "orders": "\n".join(["```text", *paragraphs, "```"])}


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
