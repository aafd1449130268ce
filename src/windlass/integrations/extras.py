"""Optional packages: checked where they will be needed, imported where they are used."""

from __future__ import annotations

from importlib.util import find_spec

from windlass.errors import ConfigurationError


def require(package: str, extra: str, what: str) -> None:
    """Raise `ConfigurationError` if a package is missing that `what` needs; `extra` of Windlass installs it."""
    if find_spec(package) is None:
        raise ConfigurationError(
            f"{what} needs the package {package}, which is not installed: pip install 'windlass-jobs[{extra}]'"
        )
