"""Writes docs/reference/api.md from the docstrings of the public names: `make docs-api`."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import windlass
from docs.generated_parts import write_page
from windlass import Event
from windlass.client.dead_letters import Alerts, DeadLetters
from windlass.recurring.schedules import Schedules
from windlass.submission.job_function import JobFunction
from windlass.worker import Worker

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "api.md"

MET: Final[dict[str, type]] = {
    "Alerts": Alerts,
    "DeadLetters": DeadLetters,
    "JobFunction": JobFunction,
    "Schedules": Schedules,
    "Worker": Worker,
}
"""Classes that one meets without importing them, e.g. what `@app.job` makes of a function."""

INTERNAL: Final = {
    "Backoff": {"from_json", "to_json"},
    "Call": {"spec", "submitter"},
    "JobContext": {"cancel", "keep", "keeps", "reported"},
    "JobOptions": {"merged", "resolved"},
    "Schedules": {"clock", "parts", "registry"},
    "Windlass": {"check_startable", "exchange", "has_worker", "parts"},
    "Worker": {"run"},
}
"""Members that other parts of the package call, and users have no need of."""

FIRST: Final = ("Windlass", "JobFunction", "Call", "JobHandle", "JobContext", "Worker", "Backoff", "JobOptions")
"""In the order in which one meets them; further ones follow by name."""


def public() -> dict[str, Any]:
    """Every public name with what it stands for, and those of `MET`."""
    everything = {name: getattr(windlass, name) for name in windlass.__all__} | MET
    later = sorted(everything.keys() - set(FIRST), key=str.lower)
    return {name: everything[name] for name in (*FIRST, *later)}


def parts() -> dict[str, str]:
    """What to write into the page, by group."""
    groups: dict[str, dict[str, Any]] = {name: {} for name in ("classes", "values", "rest", *_PAGES)}
    for name, value in public().items():
        groups[_group(value)][name] = value
    sections = {
        group: "\n\n".join(_section(*item) for item in groups[group].items()) for group in ("classes", "values")
    }
    tables = {group: _table(list(groups[group]), page) for group, page in _PAGES.items()}
    rest = "\n".join(f"- `{name}`: {_rest(name, value)}" for name, value in groups["rest"].items())
    return {**sections, **tables, "rest": rest}


_PAGES: Final = {"errors": "errors.md", "events": "events.md", "spi": "extension-points.md", "settings": "settings.md"}


def _group(value: Any) -> str:
    if not isinstance(value, type):
        return "rest"
    if issubclass(value, BaseException):
        return "errors"
    if issubclass(value, Event):
        return "events"
    if value.__module__ == "windlass.spi":
        return "spi"
    if value.__module__.startswith("windlass.settings"):
        return "settings"
    return "values" if issubclass(value, Enum) or (is_dataclass(value) and not _verbs(value)) else "classes"


def _table(names: list[str], page: str) -> str:
    rows = [f"| {_linked(name, page)} | {_summary(getattr(windlass, name))} |" for name in names]
    return "\n".join(["| name | |", "|---|---|", *rows])


def _linked(name: str, page: str) -> str:
    """Link to the heading that explains the name, if the page has one."""
    text = (PAGE.parent / page).read_text(encoding="utf-8")
    anchor = f"#{name.lower()}" if re.search(rf"^#+ `{name}`$", text, re.MULTILINE) else ""
    return f"[`{name}`]({page}{anchor})"


def _section(name: str, kind: type) -> str:
    blocks = [f"### `{name}`", _described(kind)]
    if kind is windlass.Windlass:
        blocks.append(f"```text\n{_folded(f'Windlass{_parameters(kind.__init__)}')}\n```")
    members = list(_members(name, kind))
    if members:
        blocks.append("\n".join(["| member | |", "|---|---|", *members]))
    elif issubclass(kind, Enum):
        blocks.append(", ".join(f"`{member.name}`" for member in kind) + ".")
    if is_dataclass(kind):
        own = [field.name for field in fields(kind) if not field.name.startswith("_")]
        shown = [field for field in own if field not in INTERNAL.get(name, ())]
        blocks.append(f"Fields: {', '.join(f'`{field}`' for field in shown)}.")
    return "\n\n".join(blocks)


def _members(name: str, kind: type) -> Iterator[str]:
    verbs = {verb: value for verb, value in _verbs(kind).items() if verb not in INTERNAL.get(name, ())}
    for verb, value in verbs.items():
        if verb.startswith("a") and verb[1:] in verbs:
            continue  # stands beside its twin
        twin = f", `a{verb}`" if f"a{verb}" in verbs else ""
        shown = verb if isinstance(value, property) else f"{verb}{_parameters(value)}"
        yield f"| `{_cell(shown)}`{twin} | {_summary(value)} |"


def _verbs(kind: type) -> dict[str, Any]:
    """Methods and properties, in the order of the source, those of bases last."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("windlass"):
            own = {name: value for name, value in vars(base).items() if not name.startswith("_") and _is_verb(value)}
            found = {**found, **{name: value for name, value in own.items() if name not in found}}
    return found


def _is_verb(value: object) -> bool:
    return isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)


def _parameters(method: Any) -> str:
    """The parameters with their defaults, without annotations: names and what may be left out."""
    function: Callable[..., Any] = getattr(method, "__func__", method)
    given = list(inspect.signature(function).parameters.values())
    bound = given if isinstance(method, staticmethod) else given[1:]
    plain = [each.replace(annotation=inspect.Parameter.empty, default=_shown(each.default)) for each in bound]
    return str(inspect.Signature(plain)).replace("'", '"')


def _shown(default: Any) -> Any:
    """A function as a default has an address in its repr, which differs from run to run. Enums are named as in code."""
    if isinstance(default, Enum):
        return _Source(f"{type(default).__name__}.{default.name}")
    return ... if inspect.isfunction(default) else default


class _Source(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _folded(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 100, subsequent_indent="    ", break_long_words=False))


def _described(value: Any) -> str:
    """The docstring up to its example: the pages under docs/learn have examples that are run."""
    return (inspect.getdoc(value) or "").partition("```")[0].strip()


def _summary(value: Any) -> str:
    return _cell((inspect.getdoc(value) or "").partition("\n")[0])


def _rest(name: str, value: Any) -> str:
    return "the version of the package." if name == "__version__" else _summary(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
