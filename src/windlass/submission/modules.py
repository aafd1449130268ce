"""Modules that an application names: those it allows (`allow`) and those its workers import (`include`)."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

from windlass.errors import ConfigurationError
from windlass.runtime.global_names import global_name_of
from windlass.spi import TargetPolicy
from windlass.submission.error_text import short
from windlass.submission.target import Unknown

_MODULE: Final = re.compile(r"[^\s:.*/]+(\.[^\s:.*/]+)*")
_MEANING: Final = {
    "allow": "what lies below is included, and single functions are allowed by @app.job",
    "include": "they are imported when a worker starts",
}
_MAX_NAMED: Final = 5
_MAX_FILES: Final = 200
_MAX_BYTES: Final = 65_536


def check_modules(value: object, option: str) -> tuple[str, ...]:
    """Check a list of module names given as `option`; a single text is refused."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = repr(value) if isinstance(value, str) else "'shop.tasks'"
        raise ConfigurationError(f"{option} must be a list of modules, got {short(value)}; write {option}=[{example}]")
    return tuple(_checked_module(module, option) for module in value)


def _checked_module(module: object, option: str) -> str:
    if isinstance(module, str) and _MODULE.fullmatch(module):
        return module
    raise ConfigurationError(
        f"{option} must name modules or packages such as 'shop.tasks', got {module!r}; {_MEANING[option]}"
    )


class PrefixPolicy:
    """The default `TargetPolicy`: denies everything but registered functions and those of allowed modules.

    `PrefixPolicy(["shop"], registry)` allows modules `shop` and `shop.tasks`, not `shopping`.
    """

    __slots__ = ("_registered", "allow")

    def __init__(self, allow: Iterable[str], registered: Container[str]) -> None:
        self.allow = check_modules(allow, "allow")
        self._registered = registered

    def allows(self, target: str) -> bool:
        """Return whether `target` is registered or its module is at or below an allowed prefix."""
        if target in self._registered:
            return True
        module = target.partition(":")[0]
        return any(module == prefix or module.startswith(f"{prefix}.") for prefix in self.allow)


def decision_of(policy: TargetPolicy, target: str) -> bool | Unknown:
    """Return the policy's decision. Errors are reported without their message, which may hold secrets."""
    try:
        answer: object = policy.allows(target)
    except Exception as error:  # noqa: BLE001 - any error refuses
        trouble = f"raised {type(error).__name__}"
    else:
        if isinstance(answer, bool):
            return answer
        trouble = f"answered with {type(answer).__name__}, not True or False"
    return Unknown(
        target, f"{target} does not run here: the target policy {trouble}; fix the policy", policy_failed=True
    )


def import_all(modules: Iterable[str]) -> None:
    """Import the modules of `include`; an error names the one that cannot be imported, and where it failed."""
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
                raise ConfigurationError(
                    f"include names {module!r}, and there is no module {error.name!r} here; "
                    "correct the name, or start the worker where the module can be imported"
                ) from None
            raise ConfigurationError(
                f"include names {module!r}, which cannot be imported: {type(error).__name__}: {error}{_where(error)}"
            ) from error


def _where(error: BaseException) -> str:
    """Return the line of the user's code that failed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    theirs = [frame for frame in frames if frame.filename != __file__]
    return f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""


def nothing_to_run(app: object) -> str:
    """Return the advice for a worker whose application has no job, with the modules to import where known."""
    found = undeclared_modules(global_name_of(app))
    if found:
        which = "is one" if len(found) == 1 else "are some"
        return (
            "a worker with nothing allowed would run nothing: no module with an @app.job was imported, and there "
            f"{which} beside the application; write Windlass(..., include={found[:_MAX_NAMED]!r})"
        )
    return (
        "a worker with nothing allowed would run nothing: decorate functions with @app.job; if they are in other "
        'modules, name these: Windlass(..., include=["shop.tasks"]); or allow plain functions of modules, '
        'e.g. Windlass(..., allow=["shop.tasks"])'
    )


def undeclared_modules(home: str | None) -> list[str]:
    """Return modules beside the application that seem to declare its jobs and were not imported.

    None is imported here. `home` is where the application is a global, e.g. `shop.core:app`.
    """
    module, _, name = (home or "").partition(":")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not name or file is None:
        return []
    package, folder = module.rpartition(".")[0], Path(file).parent
    decorator = re.compile(rf"^\s*@(?:\w+\.)*{re.escape(name)}\.job\b", re.MULTILINE)
    found: list[str] = []
    for source in sorted(folder.rglob("*.py") if package else folder.glob("*.py"))[:_MAX_FILES]:
        names = [*source.relative_to(folder).with_suffix("").parts]
        dotted = ".".join(part for part in (package, *names) if part and part != "__init__")
        if dotted and dotted not in sys.modules and decorator.search(_start_of(source)):
            found.append(dotted)
    return found


def _start_of(file: Path) -> str:
    try:
        with file.open("rb") as source:
            return source.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
