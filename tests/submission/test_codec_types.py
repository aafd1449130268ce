"""Values of every kind come back as what they were: by annotation, and without one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.submission.codec import decode_arguments, decode_result, encode_arguments, encode_result
from windlass.submission.signature import call_spec
from windlass.submission.values import value_codec


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Mode(StrEnum):
    FAST = "fast"


class Access(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str = "EUR"


@dataclass
class Order:
    id: UUID
    placed: datetime
    lines: list[Money] = field(default_factory=list)
    parent: Optional["Order"] = None


class Point(NamedTuple):
    x: int
    y: int = 0


class Address(TypedDict):
    street: str
    since: date


class Small(msgspec.Struct):
    a: int
    b: bytes = b""


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Customer(pydantic.BaseModel):
    name: str
    joined: datetime | None = None
    short_name: str = pydantic.Field(default="", alias="shortName")


UserId = NewType("UserId", int)
NOW = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
ID = UUID("0190a5b2-0000-7000-8000-000000000001")
# Aware times inside a fold equal nothing in another zone, not even the same moment.
FOLDED = datetime(2030, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

CASES = {
    "int": (int, 7),
    "int of any size": (int, 10**40),
    "float": (float, 0.1),
    "bool": (bool, True),
    "text": (str, 'quote " and \u2603 and \x00'),
    "none": (None, None),
    "bytes": (bytes, b"\x00\xff"),
    "bytearray": (bytearray, bytearray(b"\x00\xff")),
    "aware datetime": (datetime, NOW),
    "naive datetime": (datetime, NOW.replace(tzinfo=None)),
    "zoned datetime": (datetime, datetime(2030, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))),
    "datetime inside a fold": (datetime, FOLDED),
    "date": (date, NOW.date()),
    "time": (time, NOW.time()),
    "timedelta": (timedelta, timedelta(days=-1, microseconds=1)),
    "uuid": (UUID, ID),
    "decimal": (Decimal, Decimal("1.10")),
    "path": (Path, Path("/tmp/a b")),
    "pure path": (PurePosixPath, PurePosixPath("a/b")),
    "enum": (Colour, Colour.RED),
    "int enum": (Level, Level.HIGH),
    "text enum": (Mode, Mode.FAST),
    "flags": (Access, Access.READ | Access.WRITE),
    "literal": (Literal["a", 2], 2),
    "new type": (UserId, UserId(9)),
    "constrained": (Annotated[int, msgspec.Meta(ge=1)], 1),
    "optional": (int | None, None),
    "union": (int | datetime | None, NOW),
    "union of text-like types": (str | datetime | bytes, b"x"),
    "list": (list[Decimal], [Decimal(1), Decimal("2.5")]),
    "tuple": (tuple[int, str], (1, "a")),
    "tuple of any length": (tuple[UUID, ...], (ID, ID)),
    "set": (set[date], {NOW.date()}),
    "frozenset": (frozenset[int], frozenset({1, 2})),
    "dict": (dict[str, timedelta], {"a": timedelta(1)}),
    "dict with integer keys": (dict[int, str], {1: "a"}),
    "dict with uuid keys": (dict[UUID, int], {ID: 1}),
    "dict with enum keys": (dict[Colour, int], {Colour.RED: 1}),
    "dict with tuple keys": (dict[tuple[int, int], str], {(1, 2): "a"}),
    "dict with keys of two types": (dict[int | str, int], {1: 1, "1": 2}),
    "sequence": (Sequence[int], [1, 2]),
    "mapping": (Mapping[str, int], {"a": 1}),
    "iterable": (Iterable[int], [1, 2]),
    "dataclass": (Money, Money(Decimal("9.99"))),
    "nested dataclass": (Order, Order(ID, NOW, [Money(Decimal(1))], Order(ID, NOW))),
    "named tuple": (Point, Point(1, 2)),
    "typed dict": (Address, {"street": "x", "since": NOW.date()}),
    "struct": (Small, Small(1, b"\xff")),
    "union of tagged structs": (Cat | Dog, Dog("rex")),
    "pydantic model": (Customer, Customer(name="a", joined=NOW, shortName="b")),
    "list of pydantic models": (list[Customer], [Customer(name="a")]),
    "open dict": (dict[str, Any], {"when": NOW, "what": (1, b"x", {ID})}),
    "bare dict": (dict, {1: {2: Decimal(3)}}),
    "bare list": (list, [NOW, None]),
    "anything": (Any, [NOW, {"a": (1, 2)}]),
    "object": (object, frozenset({NOW})),
}


def round_trip(annotation: Any, value: Any) -> Any:
    codec = value_codec(annotation)
    return codec.decode(codec.encode(value))


@pytest.mark.parametrize(("annotation", "value"), CASES.values(), ids=CASES)
def test_a_value_is_restored_by_its_annotation(annotation: Any, value: Any):
    """J1.1: arguments and results are typed JSON, decoded by the target's annotations."""

    def by_position(x): ...
    def by_name(*, x): ...
    def many(*x, **y): ...

    for function in (by_position, by_name, many):
        function.__annotations__ = {"x": annotation, "y": annotation, "return": annotation}
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (by_position, (value,), {}),
        (by_position, (), {"x": value}),
        (by_name, (), {"x": value}),
        (many, (value, value), {"y": value}),
    ]
    for function, args, kwargs in calls:
        spec = call_spec(function)
        spec.bind_check(args, kwargs)
        back = decode_arguments(spec, encode_arguments(spec, args, kwargs))
        assert back == (args, kwargs) or value == FOLDED
        for sent, got in zip(args, back[0], strict=True):
            assert type(got) is type(sent)


@pytest.mark.parametrize(("annotation", "value"), CASES.values(), ids=CASES)
def test_a_result_is_restored_by_its_annotation(annotation: Any, value: Any):
    """J4.6: a return value becomes typed JSON."""
    text, warning = encode_result(value, annotation)
    assert warning is None
    back = decode_result(text, annotation)
    assert type(back) is type(value)
    assert back == value or (value == FOLDED and back.timestamp() == value.timestamp())


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
)
hashables = st.recursive(
    scalars, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=5
)
anything = st.recursive(
    hashables,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.sets(hashables, max_size=3),
        st.dictionaries(hashables, inner, max_size=3),
        st.dictionaries(st.sampled_from(["$windlass", "value", "a"]), inner, max_size=3),
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """A value's types all the way down; times as text, since one inside a fold equals nothing in another zone."""
    if isinstance(value, datetime | time):
        return (type(value), value.isoformat())
    if isinstance(value, list | tuple):
        return (type(value), [shape(item) for item in value])
    if isinstance(value, set | frozenset):
        return (type(value), sorted(repr(shape(item)) for item in value))
    if isinstance(value, dict):
        return (dict, [(shape(key), shape(item)) for key, item in value.items()])
    return (type(value), repr(value))


@given(anything)
def test_builtin_values_are_restored_without_an_annotation(value: Any):
    """J1.1: what has no annotation carries its types with it, also a dict that looks like our own tags."""
    assert shape(round_trip(Any, value)) == shape(value)


@given(st.dictionaries(st.text(), anything, max_size=3))
def test_builtin_values_are_restored_inside_an_open_dict(value: dict[str, Any]):
    assert shape(round_trip(dict[str, Any], value)) == shape(value)


ANNOTATED = {
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(),
    bytes: st.binary(),
    bool: st.booleans(),
    date: st.dates(),
    datetime: st.datetimes(),
    time: st.times(),
    timedelta: st.timedeltas(),
    UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False),
}


@given(st.data())
def test_annotated_values_are_restored_equal(data: st.DataObject):
    kind = data.draw(st.sampled_from(list(ANNOTATED)))
    values = ANNOTATED[kind]
    assert round_trip(kind, value := data.draw(values)) == value
    assert round_trip(kind | None, value) == value
    assert round_trip(list[kind], items := data.draw(st.lists(values))) == items  # type: ignore[valid-type]
    assert round_trip(set[kind], members := data.draw(st.sets(values))) == members  # type: ignore[valid-type]
    assert round_trip(tuple[kind, ...], tuple(items)) == tuple(items)  # type: ignore[valid-type]
    assert round_trip(dict[str, kind], {"a": value}) == {"a": value}  # type: ignore[valid-type]
    assert round_trip(dict[kind, int], {value: 1}) == {value: 1}  # type: ignore[valid-type]


@given(
    st.builds(Order, st.uuids(), st.datetimes(), st.lists(st.builds(Money, st.decimals(allow_nan=False), st.text())))
)
def test_dataclasses_are_restored_equal(order: Order):
    assert round_trip(Order, order) == order
