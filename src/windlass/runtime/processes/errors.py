"""Exceptions carried from a job's process to the worker: described there, rebuilt here.

The worker treats them like its own: by class (retry policies, `RetryAfter`), by marks (`@do_not_retry`), by message and
causes. Nothing is imported for that: a class is looked up in loaded modules; if it is not found, a class of the same
name replaces it, derived from its nearest base that is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

from windlass.domain.exception_chain import forbidding, links
from windlass.retry_signals import RetryAfter, do_not_retry, mark_of
from windlass.runtime.error_classes import CLASSES, ErrorClasses, class_name, classes_of
from windlass.runtime.global_names import main_module_name
from windlass.runtime.printed_traceback import print_traceback
from windlass.runtime.processes.messages import ErrorNote, Raised, fit, plain

TRACEBACK = "__windlass_traceback__"
"""Attribute of a rebuilt exception: its traceback in the process that raised it."""

MAX_LINKS = 50
"""Largest number of exceptions that are described, causes and members of groups together."""


# ---------------------------------------------------------------------- where it was raised


def raised(error: BaseException) -> Raised:
    """Return the message for an error of the body."""
    try:
        trace = print_traceback(error)
    except BaseException as broken:  # noqa: BLE001 - users' exceptions may do anything when they are printed
        trace = f"<no traceback: printing it raised {type(broken).__name__}>"
    seen = _SeenErrors()
    try:
        note = _described(error, seen)
        forbidden = forbidding(error)
        deep = None if forbidden is None or seen.contains(forbidden) else _described(forbidden, _SeenErrors(MAX_LINKS))
    except BaseException:  # noqa: BLE001 - attributes that raise; class and message are known anyway
        note, deep = ErrorNote(_kinds(error), _text(error)), None
    members = [[fit(name) for name in member] for member in classes_of(error).members]
    return Raised(note, fit(trace), deep, members)


class _SeenErrors:
    """The exceptions that were described already: chains may be circular or endless."""

    def __init__(self, used: int = 0) -> None:
        self._ids: set[int] = set()
        self._max = MAX_LINKS - used

    def contains(self, error: BaseException) -> bool:
        return id(error) in self._ids

    def add(self, error: BaseException | None) -> bool:
        if error is None or self.contains(error) or len(self._ids) >= self._max:
            return False
        self._ids.add(id(error))
        return True


def _described(error: BaseException, seen: _SeenErrors) -> ErrorNote:
    seen.add(error)
    note = ErrorNote(_kinds(error), _text(error))
    if all(map(plain, error.args)):
        note.args = list(error.args)
    note.state = {name: value for name, value in vars(error).items() if plain(name) and plain(value)}
    note.do_not_retry = mark_of(type(error))
    if isinstance(error, RetryAfter):
        note.delay = _seconds(error.delay)
    note.suppressed = error.__suppress_context__
    if seen.add(error.__cause__):
        note.cause = _described(error.__cause__, seen)  # type: ignore[arg-type]  # None is never added
    if seen.add(error.__context__):
        note.context = _described(error.__context__, seen)  # type: ignore[arg-type]  # the same
    if isinstance(error, BaseExceptionGroup):
        note.text = fit(str(error.message))
        note.members = [_described(member, seen) for member in error.exceptions if seen.add(member)]
    return note


def _kinds(error: BaseException) -> list[str]:
    return [_name(kind) for kind in type(error).__mro__ if issubclass(kind, BaseException)]


def _name(kind: type) -> str:
    return fit(class_name(kind))


def _text(error: BaseException) -> str:
    try:
        return fit(str(error))
    except BaseException as broken:  # noqa: BLE001 - users' exceptions may do anything in __str__
        return f"<no message: its __str__ raised {type(broken).__name__}>"


def _seconds(delay: Any) -> float | None:
    """Return a delay in seconds; a subclass of RetryAfter may have set it to a number itself."""
    return delay.total_seconds() if isinstance(delay, timedelta) else delay if plain(delay) else None


# ---------------------------------------------------------------------- where it is judged


def rebuilt(message: Raised) -> BaseException:
    """Return an exception that looks, to policies and in the history, like the one described."""
    error = _rebuilt(message.error)
    if message.deep is not None:
        *_, last = links(error)
        last.__cause__ = _rebuilt(message.deep)
    setattr(error, TRACEBACK, message.traceback)
    members = tuple(map(frozenset, message.members))
    setattr(error, CLASSES, ErrorClasses(frozenset(message.error.kinds), members))
    return error


def _rebuilt(note: ErrorNote) -> BaseException:
    error = _group(note) if note.members else _single(note)
    if isinstance(error, RetryAfter) and note.delay is not None:
        error.delay = timedelta(seconds=note.delay)
    error.__cause__ = _rebuilt(note.cause) if note.cause else None
    error.__context__ = _rebuilt(note.context) if note.context else None
    error.__suppress_context__ = note.suppressed
    return error


def _single(note: ErrorNote) -> BaseException:
    known = _loaded(note.kinds[0])
    if known is not None and note.args is not None:
        made = _remade(known, note)
        if made is not None:
            return made
    for base in _loaded_kinds(note):
        made = _remade(_stand_in(base, note), note)
        if made is not None:
            return made
    return Exception(note.text)


def _remade(kind: type[BaseException] | None, note: ErrorNote) -> BaseException | None:
    """Return an exception made without calling `__init__`; None if its text differs from the original's."""
    if kind is None:
        return None
    args = note.args or []
    try:
        error = kind.__new__(kind, *args)
        error.args = tuple(args)
        vars(error).update(note.state)
        return error if type(error) is kind and _text(error) == note.text else None
    except Exception:  # noqa: BLE001 - users' classes; the next way is tried
        return None


def _stand_in(base: type[BaseException], note: ErrorNote) -> type[BaseException] | None:
    """Return a class of the described name, derived from a loaded base."""
    module, _, qualname = note.kinds[0].partition(":")
    body = {"__module__": module, "__qualname__": qualname, "__str__": lambda _: note.text}
    try:
        kind: type[BaseException] = type(qualname.rpartition(".")[2], (base,), body)
    except Exception:  # noqa: BLE001 - a base that refuses subclasses
        return None
    return kind if note.do_not_retry is None else do_not_retry(note.do_not_retry)(kind)


def _group(note: ErrorNote) -> BaseException:
    members = [_rebuilt(member) for member in note.members]
    for kind in (*_loaded_kinds(note), BaseExceptionGroup):
        if issubclass(kind, BaseExceptionGroup):
            try:
                return kind(note.text, members)
            except Exception:  # noqa: BLE001, S112 - a group class with a constructor of its own
                continue
    return _single(note)


def _loaded_kinds(note: ErrorNote) -> Iterator[type[BaseException]]:
    return (kind for name in note.kinds if (kind := _loaded(name)) is not None)


def _loaded(name: str) -> type[BaseException] | None:
    """Return the exception class of a name if its module is loaded; runs none of its code."""
    module, _, qualname = name.partition(":")
    scope: Any = sys.modules.get("__main__" if module == main_module_name() else module)
    for part in qualname.split("."):
        scope = vars(scope).get(part) if isinstance(scope, ModuleType | type) else None
    return scope if isinstance(scope, type) and issubclass(scope, BaseException) else None
