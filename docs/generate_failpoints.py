"""Writes the table of docs/reference/failpoints.md from the registry of points: `make docs-failpoints`."""

import sys
from pathlib import Path

from docs.generated_parts import write_page
from windlass.runtime.failpoints import POINTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "failpoints.md"


def parts() -> dict[str, str]:
    """What to write into the page."""
    rows = [f"| `{name}` | {sentence} |" for name, sentence in POINTS.items()]
    return {"points": "\n".join(["| point | what is true when a process passes it |", "|---|---|", *rows])}


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
