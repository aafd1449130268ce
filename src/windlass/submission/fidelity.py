"""Check whether a value survives storage: compares what was sent with what a decoder made of it."""

import dataclasses
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from windlass.submission.error_text import short


def find_loss(sent: Any, back: Any) -> str | None:
    """Return what of `sent` is lost or changed in `back`, and what to do; None if nothing is.

    Conversions that keep the meaning are not losses: a list for a tuple, a dict for a dataclass, text for what it
    spells.
    """
    return None if _equal(sent, back) else _loss(sent, back, "")


def _loss(sent: Any, back: Any, path: str) -> str | None:
    if isinstance(back, Mapping):
        return _loss_in_mapping(sent, back, path)
    if isinstance(back, set | frozenset):
        return _loss_in_set(sent, back, path)
    names = _field_names(back)
    if names is not None:
        return _loss_in_record(sent, back, names, path)
    if isinstance(back, list | tuple):
        return _loss_in_sequence(sent, back, path)
    return None if _equal(sent, back) or _same_meaning(sent, back) else _changed(sent, back, path)


def _loss_in_mapping(sent: Any, back: Mapping[Any, Any], path: str) -> str | None:
    if not isinstance(sent, Mapping) or len(sent) != len(back):
        return _changed(sent, back, path)
    for (sent_key, sent_item), (key, item) in zip(sent.items(), back.items(), strict=True):
        step = f"{path}[{short(sent_key)}]"
        loss = _loss(sent_key, key, f"{path} key".strip()) or _loss(sent_item, item, step)
        if loss is not None:
            return loss
    return None


def _loss_in_set(sent: Any, back: Collection[Any], path: str) -> str | None:
    """Items of sets cannot be paired, so only their types are compared."""
    if not isinstance(sent, Collection) or isinstance(sent, str | bytes | Mapping) or len(sent) != len(back):
        return _changed(sent, back, path)
    if {type(item) for item in sent} != {type(item) for item in back}:
        return _changed(sent, back, path)
    return None


def _loss_in_record(sent: Any, back: Any, names: Collection[str], path: str) -> str | None:
    if isinstance(sent, Mapping):
        return None
    if type(sent) is not type(back):
        return _changed(sent, back, path)
    for name in names:
        loss = _loss(getattr(sent, name, None), getattr(back, name, None), f"{path}.{name}")
        if loss is not None:
            return loss
    return None


def _loss_in_sequence(sent: Any, back: Collection[Any], path: str) -> str | None:
    if not isinstance(sent, list | tuple | set | frozenset) or len(sent) != len(back):
        return _changed(sent, back, path)
    for index, (sent_item, item) in enumerate(zip(sent, back, strict=True)):
        loss = _loss(sent_item, item, f"{path}[{index}]")
        if loss is not None:
            return loss
    return None


def _same_meaning(sent: Any, back: Any) -> bool:
    if isinstance(sent, str):
        return not isinstance(back, str | bytes | bytearray | None)  # text taken for base64 would be other bytes
    if isinstance(back, Enum):
        return _equal(sent, back.value)
    if isinstance(sent, float) and isinstance(back, Decimal):
        return _equal(sent, float(back))
    if type(sent) is not type(back):
        return False
    if isinstance(sent, datetime):  # aware times inside a fold equal nothing in another zone
        return bool(sent.tzinfo and back.tzinfo and sent.astimezone(UTC) == back.astimezone(UTC))
    if isinstance(sent, Decimal):  # NaN does not equal itself
        return str(sent) == str(back)
    return getattr(type(sent), "__eq__", None) is object.__eq__


def _field_names(value: Any) -> Collection[str] | None:
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    for mark in ("__struct_fields__", "model_fields", "_fields"):  # msgspec, pydantic, named tuples
        names = getattr(cls, mark, None)
        if isinstance(names, tuple | dict):
            return names
    return None


def _equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001 - a user's __eq__ may raise anything; then the fields decide
        return False


def _changed(sent: Any, back: Any, path: str) -> str:
    what = f"at {path}: {short(sent)}" if path else "it"
    return f"{what} would come back as {short(back)}; pass what the annotation says, or annotate what is passed"


def not_finite(value: Any) -> float | None:
    """Find a NaN or an infinity in a value made of built-in types."""
    if isinstance(value, float):
        return None if isfinite(value) else value
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple | set | frozenset):
        return None
    return next((found for item in value if (found := not_finite(item)) is not None), None)
