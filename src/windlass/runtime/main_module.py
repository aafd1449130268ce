"""By which name other processes know the program's main file."""

import sys
from pathlib import Path
from typing import Final

MAIN_NAMES: Final = ("__main__", "__mp_main__")
"""Names of the main module that mean something else in every process."""


def main_module_name() -> str:
    """Give the name by which other processes import the program's main file; `__main__` in an interactive session."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return Path(file).stem if file and not file.startswith("<") else "__main__"  # "<stdin>" is no file
