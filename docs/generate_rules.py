"""Writes the lists of tests into docs/reference/rules.md: `make docs-rules`, or `python -m docs.generate_rules`.

A test proves a rule if its docstring names it ("J3.1: …"). The statements of the rules are written by hand and stay;
the page's own markers are the list of rules, so a rule is added by writing its statement and an empty part below it.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from docs.generated_parts import names_in, write_page

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "rules.md"
PLACES = ("tests", "src/windlass/testing/contract")
"""Where tests are. The store contract is shipped with the package; tests/stores runs it on every store."""

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


@cache
def _tests(path: Path) -> list[tuple[str, str]]:
    """Every test function of a file with its docstring, those in classes with the name of their class."""
    return list(_find_tests(path))


def _find_tests(path: Path) -> Iterator[tuple[str, str]]:
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


def stated() -> list[str]:
    """The rules that the page states, in its order."""
    return names_in(PAGE.read_text(encoding="utf-8"))


def parts(root: Path = ROOT) -> dict[str, str]:
    """What to write into the page, by rule."""
    found = named_by_tests(root)
    return {rule: listed(found[rule]) if rule in found else "**No test names this rule yet.**" for rule in stated()}


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
