"""Names under which functions are registered: one each, and aliases that earlier releases stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from windlass.errors import ConfigurationError, InvalidOptionError
from windlass.runtime.global_names import MAIN_NAMES, main_module_name
from windlass.submission.error_text import short
from windlass.submission.target import TargetFunction

MAX_CHARACTERS: Final = 255
_NAME: Final = re.compile(rf"[\w./:-]{{1,{MAX_CHARACTERS}}}")
_RULE: Final = f"1 to {MAX_CHARACTERS} letters, digits and _ . : / -"


def check_target(value: object, option: str = "name") -> str:
    """Check the name of a job: `billing.charge`, or `module:qualname` as the default name is."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise InvalidOptionError(f"{option} must be {_RULE}, got {short(value)}; e.g. 'billing.charge'")


def check_aliases(value: object) -> tuple[str, ...]:
    """Check the earlier names of a job; a single text is refused."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = repr(value) if isinstance(value, str) else "'shop.old:charge'"
        raise InvalidOptionError(f"aliases must be a list of names, got {short(value)}; write aliases=[{example}]")
    return tuple(dict.fromkeys(check_target(alias, "an alias") for alias in value))


class Names:
    """Registered functions by name and by alias. A name belongs to one function."""

    def __init__(self) -> None:
        self._by_name: dict[str, TargetFunction] = {}
        self._by_alias: dict[str, TargetFunction] = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """The names, without aliases."""
        return tuple(self._by_name)

    @property
    def functions(self) -> tuple[TargetFunction, ...]:
        """The functions, each once."""
        return tuple(self._by_name.values())

    def get(self, name: object) -> TargetFunction | None:
        """Return the function of a name or an alias."""
        if not isinstance(name, str):
            return None
        return self._by_name.get(name) or self._by_alias.get(name)

    def canonical(self, name: str) -> str:
        """Return the name of the function with the alias `name`; else `name` itself."""
        function = self._by_alias.get(name)
        return name if function is None else function.target

    def add(self, function: TargetFunction) -> tuple[str, ...]:
        """Register a function, replacing an earlier version of its source; return the names whose meaning may change.

        Raises `ConfigurationError` if another function has one of its names, and then registers nothing.
        """
        names = (function.target, *function.aliases)
        earlier = {name: found for name in names if (found := self.get(name)) is not None}
        for name, found in earlier.items():
            if not _is_same_source(found, function):
                raise ConfigurationError(
                    f"two functions are registered as {name!r}: {_described(found, name)} and "
                    f"{_described(function, name)}; give one of them another name"
                )
        forgotten = {name for found in earlier.values() for name in self._forget(found)}
        self._by_name[function.target] = function
        self._by_alias |= dict.fromkeys(function.aliases, function)
        self._by_alias.pop(function.target, None)
        return (*names, *forgotten)

    def _forget(self, function: TargetFunction) -> list[str]:
        names = [
            name for table in (self._by_name, self._by_alias) for name, found in table.items() if found is function
        ]
        for name in names:
            self._by_name.pop(name, None)
            self._by_alias.pop(name, None)
        return names


def _is_same_source(first: TargetFunction, second: TargetFunction) -> bool:
    """Return whether both are equal, reloaded from the same lines, or redefined in an interactive session."""
    if first.function is second.function or (_is_interactive(second) and _is_called_the_same(first, second)):
        return True
    one, other = getattr(first.function, "__code__", None), getattr(second.function, "__code__", None)
    if one is None or other is None:
        return False
    return bool((one.co_filename, one.co_firstlineno) == (other.co_filename, other.co_firstlineno))


def _is_interactive(function: TargetFunction) -> bool:
    module = getattr(function.function, "__module__", None)
    return function.target.startswith("__main__:") or (module in MAIN_NAMES and main_module_name() in MAIN_NAMES)


def _is_called_the_same(first: TargetFunction, second: TargetFunction) -> bool:
    return first.target == second.target and (
        first.home == second.home or second.target.startswith("__main__:")  # a custom resolver's names may contain more
    )


def _described(function: TargetFunction, name: str) -> str:
    code = getattr(function.function, "__code__", None)
    location = f"{code.co_filename}:{code.co_firstlineno}" if code else short(function.function)
    return f"{location} (as an alias)" if name in function.aliases else location
