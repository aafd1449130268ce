"""Names of an error's classes, as `module:qualname`, which are stored and compared without importing the classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from windlass.runtime.global_names import importable

CLASSES: Final = "__windlass_classes__"
"""Attribute of an exception rebuilt from another process: the `ErrorClasses` it had there."""


class ErrorClasses(NamedTuple):
    """The names of an error's class and its bases and, for a group, of its members."""

    own: frozenset[str]
    members: tuple[frozenset[str], ...] = ()
    """One entry per class of member; nested groups are replaced by their members."""

    def any_in(self, names: Iterable[str]) -> bool:
        """Return whether the error, or any member of a group, is of one of these classes."""
        wanted = frozenset(names)
        return not wanted.isdisjoint(self.own) or any(not wanted.isdisjoint(member) for member in self.members)

    def all_in(self, names: Iterable[str]) -> bool:
        """Return whether the error, or every member of a group, is of one of these classes."""
        wanted = frozenset(names)
        if not wanted.isdisjoint(self.own):
            return True
        return bool(self.members) and all(not wanted.isdisjoint(member) for member in self.members)


def class_name(kind: type) -> str:
    """Return the stored name of a class. A class of the program's main file gets that file's module name."""
    return f"{importable(kind.__module__)}:{kind.__qualname__}"


def classes_of(error: BaseException) -> ErrorClasses:
    """Return the class names of an error, even of one that was raised in another process."""
    known = getattr(error, CLASSES, None)
    if isinstance(known, ErrorClasses):
        return known
    members = {type(leaf) for leaf in _members(error)} if isinstance(error, BaseExceptionGroup) else ()
    return ErrorClasses(_names(type(error)), tuple(map(_names, members)))


def _names(kind: type) -> frozenset[str]:
    return frozenset(class_name(base) for base in kind.__mro__ if issubclass(base, BaseException))


def _members(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the members, without recursion: groups may be nested deeper than the stack."""
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop()
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            yield error
