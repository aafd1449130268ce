"""Which of the declared types a value has, decided where steps run: by `isinstance` on the class of each type."""

import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

from windlass.pipelines.step_types import (
    class_of,
    is_anything,
    literals_of,
    members,
    protocol_members,
    protocol_of,
    unwrapped,
)

_NUMBERS: Final[dict[type, tuple[type, ...]]] = {float: (float, int), complex: (complex, float, int)}
"""What else the numeric types take, as type checkers do."""
_ANYTHING: Final = 1 << 30
_NEVER: Final = -1


def fits(annotation: Any, value: Any) -> bool:
    """Return whether a value has a type, or one of the members of a union."""
    return TypeChoice(members(annotation)).of(value) is not None


def classes_of(annotation: Any) -> tuple[type, ...]:
    """Return the classes whose instances have this type; empty where a class does not decide."""
    found = class_of(annotation)
    return () if found is None else _NUMBERS.get(found, (found,))


class TypeChoice:
    """Chooses among types the most specific one that a value has; remembers the choice of each class."""

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = tuple(types)
        self._tests = [_test(kind) for kind in self.types]
        self._by_class: dict[type, int | None] | None = {}
        if any(_looks_inside(kind) for kind in self.types):
            self._by_class = None

    def of(self, value: Any) -> int | None:
        """Return the index of the type; None if the value has none of them."""
        if self._by_class is None:
            return self._choose(value)
        kind = type(value)
        if kind not in self._by_class:
            self._by_class[kind] = self._choose(value)
        return self._by_class[kind]

    def _choose(self, value: Any) -> int | None:
        distances = [(test(value), index) for index, test in enumerate(self._tests)]
        found = min((pair for pair in distances if pair[0] != _NEVER), default=None)
        return None if found is None else found[1]


def _looks_inside(annotation: Any) -> bool:
    """Return whether the value and not only its class decides."""
    plain = unwrapped(annotation)
    several = len(members(annotation)) > 1 and any(map(_looks_inside, members(annotation)))
    return several or typing.is_typeddict(plain) or literals_of(plain) is not None or protocol_of(plain) is not None


def _test(annotation: Any) -> Callable[[Any], int]:
    """Return a function from a value to the distance of its class from the type: 0 is the class itself."""
    inner = members(annotation)
    if len(inner) > 1:  # several of one class, which are one entry
        tests = [_test(member) for member in inner]
        return lambda value: min((found for test in tests if (found := test(value)) != _NEVER), default=_NEVER)
    plain = unwrapped(annotation)
    values, protocol, classes = literals_of(plain), protocol_of(plain), classes_of(plain)
    if values is not None:
        return lambda value: 0 if any(type(value) is type(one) and value == one for one in values) else _NEVER
    if typing.is_typeddict(plain):
        return _typed_dict_test(plain)
    if protocol is not None:
        names = tuple(protocol_members(protocol))
        return lambda value: _ANYTHING - 1 if all(hasattr(value, name) for name in names) else _NEVER
    if classes and not is_anything(plain):
        return lambda value: _distance(type(value), classes) if isinstance(value, classes) else _NEVER
    return lambda value: _ANYTHING


def _typed_dict_test(kind: Any) -> Callable[[Any], int]:
    required: frozenset[str] = kind.__required_keys__
    known = frozenset(kind.__annotations__)

    def test(value: Any) -> int:
        if not isinstance(value, dict) or not required <= value.keys():
            return _NEVER
        return len(value.keys() - known)  # the one that knows most of its keys

    return test


def _distance(kind: type, classes: tuple[type, ...]) -> int:
    """Return the number of steps up the classes of a value; a virtual base class is behind all others."""
    order = kind.__mro__
    found = [order.index(one) + distance for distance, one in enumerate(classes) if one in order]
    return min(found, default=len(order))
