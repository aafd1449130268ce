"""Writes the lists of tests into docs/reference/rules.md: `make docs-rules`, or `python -m docs.generate_rules`.

A test proves a rule if its docstring names it ("J3.1: …"). The statements of the rules are written by hand and stay.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.generated_parts import write_page

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "rules.md"
PLACES = ("tests", "src/windlass/testing/contract")
"""Where tests are. The store contract is shipped with the package; tests/stores runs it on every store."""

RULES = (
    *("J1.1", "J1.2", "J1.3", "J1.4", "J1.5", "J1.6", "J1.7", "J1.8", "J1.9"),
    *("J2.1", "J2.2", "J2.3", "J2.4", "J2.5"),
    *("J3.1", "J3.2", "J3.3", "J3.4", "J3.5", "J3.6"),
    *("J4.1", "J4.2", "J4.3", "J4.4", "J4.5", "J4.6"),
    *("J5.1", "J5.2", "J5.3", "J5.4", "J5.5", "J5.6", "J5.7", "J5.8"),
    *("J6.1", "J6.2", "J6.3", "J6.5"),
    *("J7.1", "J7.2", "J7.3", "J7.4", "J7.5", "J7.6", "J7.7", "J7.8", "J7.9"),
    *("J10.1", "J10.2", "J10.3", "J10.5", "J10.7"),
    "P6.1",
)
"""What is built so far; a rule without a test is an error."""

_RULE = re.compile(r"\b[JP]\d+\.\d+\b")

NamesByFile = Mapping[str, list[str]]


def named_by_tests(root: Path = ROOT, names: re.Pattern[str] = _RULE) -> dict[str, dict[str, list[str]]]:
    """For each rule (or whatever else `names` finds) the files and the names of the tests whose docstrings name it."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for place in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            for name, docstring in _tests(path):
                for rule in set(names.findall(docstring)):
                    found[rule].setdefault(path.relative_to(root).as_posix(), []).append(name)
    return dict(found)


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    """Every test function of a file, those in classes with the name of their class."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", text) for name, text in _functions(node.body))
        else:
            yield from _functions([node])


def _functions(nodes: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def listed(tests: NamesByFile) -> str:
    """The tests of one rule as Markdown, folded away until somebody wants to see them."""
    count = sum(len(names) for names in tests.values())
    lines = [f"<details><summary>{count} test{'' if count == 1 else 's'}</summary>", ""]
    for file, names in tests.items():
        lines.append(f"- [{file}](../../{file})")
        lines += [f"  - `{name}`" for name in names]
    return "\n".join([*lines, "", "</details>"])


def parts(root: Path = ROOT) -> dict[str, str]:
    """What to write into the page, by rule."""
    found = named_by_tests(root)
    return {rule: listed(found[rule]) if rule in found else "**No test names this rule yet.**" for rule in RULES}


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
