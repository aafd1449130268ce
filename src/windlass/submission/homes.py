"""Where an object is a global, so that another process can find its own one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from windlass.runtime.main_module import MAIN_NAMES, main_module_name


def home_of(value: object) -> str | None:
    """Give `module:name` of a global that is this very object; None if there is none. Runs no code of any module.

    The program's main file is named last: what it takes from another module is found there.
    """
    modules: list[tuple[str, Any]] = list(sys.modules.items())  # anybody may put anything there
    for name, module in sorted(modules, key=lambda item: item[0] in MAIN_NAMES):
        for attribute, found in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if found is value:
                home = main_module_name() if name in MAIN_NAMES else name
                return None if home in MAIN_NAMES else f"{home}:{attribute}"
    return None
