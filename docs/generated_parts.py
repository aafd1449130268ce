"""The parts of a page that a script writes: everything between `<!-- generated: name -->` and `<!-- end: name -->`."""

import re
from collections.abc import Mapping
from pathlib import Path

_PART = re.compile(r"(?P<start><!-- generated: (?P<name>[\w.]+) -->\n).*?(?P<end><!-- end: (?P=name) -->)", re.DOTALL)


def names_in(page: str) -> list[str]:
    """The names of the generated parts of a page, in order."""
    return [found["name"] for found in _PART.finditer(page)]


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with its generated parts written anew; what people wrote around them stays as it is."""

    def write(found: re.Match[str]) -> str:
        return f"{found['start']}{parts[found['name']].strip()}\n{found['end']}"

    return _PART.sub(write, page)


def write_page(path: Path, parts: Mapping[str, str]) -> bool:
    """Fill a page in place; True if that changed it."""
    old = path.read_text(encoding="utf-8")
    new = filled(old, parts)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old
