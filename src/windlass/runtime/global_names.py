"""Names by which other processes find global objects of this one: its main module, and globals of any module."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

MAIN_NAMES: Final = ("__main__", "__mp_main__")
"""Names of the main module, which mean a different module in every process."""


def main_module_name() -> str:
    """Return the name by which other processes import the main file; `__main__` in an interactive session."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return Path(file).stem if file and not file.startswith("<") else "__main__"  # "<stdin>" is not a file


def importable(module: str) -> str:
    """Give the name by which other processes import a module: its own, unless it is the main one."""
    return main_module_name() if module in MAIN_NAMES else module


def global_name_of(value: object) -> str | None:
    """Return `module:name` of a global that is this object; None if there is none. Runs no code of any module.

    The program's main file is checked last: what it imports from another module is found there.
    """
    modules: list[tuple[str, Any]] = list(sys.modules.items())  # any program may put any object there
    for name, module in sorted(modules, key=lambda item: item[0] in MAIN_NAMES):
        for attribute, found in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if found is value:
                home = importable(name)
                return None if home in MAIN_NAMES else f"{home}:{attribute}"
    return None
