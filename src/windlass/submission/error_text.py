"""The text of values and types in error messages of this package."""

import dataclasses
import inspect
import io
import types
from collections.abc import Iterable
from enum import Enum
from reprlib import Repr
from typing import Any

from windlass.domain.job_result import Placeholder

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = 4

NOT_FINITE = "JSON has no {!r}; pass None, or text that the job understands"


def short(value: object) -> str:
    """Return a repr of bounded length that does not fail, whatever the value's own repr does."""
    try:
        return _SHORT.repr(value)
    except BaseException:  # noqa: BLE001 - a user's broken __repr__ must not hide the error being written
        return f"<{type(value).__name__} object>"


def type_name(annotation: Any) -> str:
    """Return an annotation as one would write it."""
    return inspect.formatannotation(annotation)


def remedy(value: object) -> str:
    """Say what to write instead of a value that cannot be stored as it is."""
    kind = type(value).__name__
    if isinstance(value, Placeholder):
        return f"{value} stands for one whole argument of a call that follows a job: on_success=clean_up.bind({value})"
    if isinstance(value, Enum) or _is_typed_record(value):
        return f"annotate it with {kind}, so that it can be read back"
    if isinstance(value, type | types.ModuleType):
        return "pass its name"
    if isinstance(value, io.IOBase):
        return "pass the path, and open the file in the job"
    if callable(value):
        return "pass its name, or make it a job of its own"
    if isinstance(value, Iterable):
        return "pass a list of its items"
    return f"make {kind} a dataclass, a msgspec.Struct or a pydantic model and annotate it, or pass an id"


def _is_typed_record(value: object) -> bool:
    cls = type(value)
    if dataclasses.is_dataclass(cls) or (isinstance(value, tuple) and hasattr(cls, "_fields")):
        return True
    return any(hasattr(cls, mark) for mark in ("__struct_fields__", "__attrs_attrs__", "model_dump"))
