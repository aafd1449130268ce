"""Which types reach which step."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NoReturn, Protocol, TypedDict, TypeVar

import pytest

from windlass.errors import ConfigurationError
from windlass.pipelines.step_types import element_of, members, type_name
from windlass.pipelines.type_rules import StreamMember, TypeShare, check_steps, input_type, share, stream_after

OrderId = NewType("OrderId", int)
T = TypeVar("T")
B = TypeVar("B", bound=date)


class Animal: ...


class Dog(Animal): ...


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


class Printed(ABC):
    @abstractmethod
    def text(self) -> str: ...


class Box(Generic[T]): ...


class Closable(Protocol):
    def close(self) -> None: ...


class Named(Protocol):
    name: str


class File:
    def close(self) -> None: ...


@dataclass
class Person:
    name: str


class Row(TypedDict):
    id: int


class PricedRow(TypedDict):
    id: int
    price: float


class Note(TypedDict):
    text: str


class Step(NamedTuple):
    """A step as the rules see it."""

    name: str
    takes: Any
    gives: Any = Any
    replaces_stream: bool = False
    passes_input_on: bool = False


WHOLE, PART, NONE = TypeShare.WHOLE, TypeShare.PART, TypeShare.NONE


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        (int, int, WHOLE), (int, str, NONE), (Dog, Animal, WHOLE), (Animal, Dog, PART), (Animal, File, NONE),
        (int, Any, WHOLE), (int, object, WHOLE), (Any, int, PART), (object, int, PART), (T, int, PART), (int, T, WHOLE),
        (datetime, B, WHOLE), (str, B, NONE),
        (int | str, str, PART), (int | str, int | str | None, WHOLE), (int, float, WHOLE), (float, int, NONE),
        (None, None, WHOLE), (None, int | None, WHOLE), (None, int, NONE),
        (list[int], list, WHOLE), (list, list[int], WHOLE), (list[int], list[str], NONE), (list[int], dict, NONE),
        (list[Any], list[int], WHOLE), (list[int], Sequence[int], WHOLE), (list[int], Sequence[str], NONE),
        (dict[str, int], Mapping[str, int], WHOLE), (dict[str, int], Mapping[int, int], NONE),
        (Mapping[str, int], dict[str, int], PART), (dict[str, int], Iterable[str], WHOLE),
        (tuple[int, ...], tuple[int, str], WHOLE), (Box[int], Box[int], WHOLE), (Box[int], Box[str], NONE),
        (OrderId, int, WHOLE), (int, OrderId, WHOLE), (OrderId, str, NONE),
        (Annotated[int, {"unit": "ms"}], int, WHOLE), (str, Annotated[str, "note"], WHOLE),
        (Literal["a"], str, WHOLE), (Literal["a"], int, NONE), (str, Literal["a"], PART), (int, Literal["a"], NONE),
        (Literal["a", 1], str, PART), (Literal["a", "b"], Literal["b"], PART), (Literal["a"], Literal["a", "b"], WHOLE),
        (File, Closable, WHOLE), (Animal, Closable, NONE), (Person, Named, WHOLE), (Animal, Named, PART),
        (Closable, File, PART), (Closable, Closable, WHOLE), (Closable, Named, PART),
        (Row, dict, WHOLE), (dict, Row, PART), (Row, PricedRow, PART), (PricedRow, Row, WHOLE), (Row, Note, NONE),
        (Row, str, NONE), (str, Row, NONE), (Shape, Printed, PART), (Shape, Animal, NONE),
    ],
)  # fmt: skip
def test_a_step_takes_all_a_part_or_nothing_of_a_type(given, taken, expected):
    """P1.1, P1.2."""
    assert share(given, taken) is expected


def stream(*types: Any) -> tuple[StreamMember, ...]:
    return tuple(StreamMember(kind, "step 'before'") for kind in types)


def types_after(types: tuple[Any, ...], step: Step) -> list[Any]:
    return [member.type for member in stream_after(stream(*types), step, "pipeline orders@1")]


def test_a_type_that_a_step_takes_whole_is_replaced_by_its_output():
    """P1.1."""
    assert types_after((int,), Step("s", int, str)) == [str]


def test_a_type_that_a_step_does_not_take_is_passed_on():
    """P1.2."""
    assert types_after((int, Dog), Step("s", int, str)) == [Dog, str]


def test_a_type_that_a_step_takes_in_part_stays_and_its_output_is_added():
    """P1.2."""
    assert types_after((Animal,), Step("s", Dog, str)) == [Animal, str]
    assert types_after((Any,), Step("s", Dog, str)) == [Any, str]


def test_a_type_is_in_the_stream_once():
    """P1.1."""
    assert types_after((int, str), Step("s", int, str)) == [str]


def test_a_union_that_a_step_gives_is_all_its_members():
    """P1.1."""
    assert types_after((int,), Step("s", int, str | Dog | None)) == [Dog, type(None), str]


def test_a_step_that_returns_none_gives_items_of_none():
    """P1.1."""
    assert types_after((int,), Step("s", int, None)) == [type(None)]


def test_a_step_that_never_returns_removes_the_types_it_takes():
    """P1.1."""
    assert types_after((int, str), Step("s", int, NoReturn)) == [str]
    with pytest.raises(ConfigurationError, match="the steps before it give nothing"):
        check_steps([Step("refuse", int, NoReturn), Step("next", int, int)], "pipeline orders@1")


def test_a_tap_changes_nothing():
    """P1.1."""
    assert types_after((int, str), Step("s", int, Dog, passes_input_on=True)) == [int, str]


@pytest.mark.parametrize("is_tap", [False, True])
def test_a_mismatch_names_both_steps_and_both_types(is_tap: bool):
    """P1.1."""
    with pytest.raises(ConfigurationError) as caught:
        check_steps([Step("parse", dict, Animal), Step("price", Person, passes_input_on=is_tap)], "pipeline orders@1")
    assert str(caught.value) == (
        "pipeline orders@1: step 'price' takes Person, but step 'parse' gives Animal, so no item would reach it; "
        "correct one of the annotations, or add a step before it that gives Person"
    )


def test_a_mismatch_behind_a_branch_names_all_that_arrives():
    """P1.1, P1.2."""
    steps = [Step("parse", dict, int | str), Step("count", int, Dog), Step("price", Person)]
    with pytest.raises(ConfigurationError, match="step 'parse' gives str and step 'count' gives Dog"):
        check_steps(steps, "pipeline orders@1")


def test_a_reduce_must_take_the_whole_stream():
    """P1.1."""
    with pytest.raises(ConfigurationError) as caught:
        types_after((int, str), Step("total", int, Dog, replaces_stream=True))
    assert "step 'total' must take the whole stream" in str(caught.value)
    assert "step 'before' gives str; take int | str, or add a step" in str(caught.value)
    assert types_after((int, str), Step("total", int | str, Dog, replaces_stream=True)) == [Dog]


@pytest.mark.parametrize("taken", [Any, object, int | Any])
def test_a_reduce_of_anything_takes_every_stream(taken):
    """P1.1."""
    assert types_after((int, str), Step("total", taken, Dog, replaces_stream=True)) == [Dog]


def test_a_reduce_takes_a_stream_of_unknown_type():
    """P1.1."""
    assert types_after((Any,), Step("total", int, Dog, replaces_stream=True)) == [Dog]


def test_the_input_has_the_type_that_the_first_step_takes():
    """P1.1: a tap of anything in front does not decide."""
    tap = Step("log", object, passes_input_on=True)
    assert input_type([Step("parse", dict)]) is dict
    assert input_type([tap, Step("parse", dict)]) is dict
    assert input_type([Step("parse", Any), Step("next", dict)]) is Any
    assert input_type([tap]) is Any
    assert [member.type for member in check_steps([tap, Step("parse", dict, int)], "")] == [int]


def test_members_do_not_depend_on_the_order_in_which_they_are_written():
    """P1.4: `typing` returns the union that was written first."""
    assert members(int | str | None) == members(None | str | int) == (type(None), int, str)
    assert members(Annotated[int | Annotated[str, "b"], "a"]) == (int, Annotated[str, "b"])
    assert members(int) == (int,)


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (None, "None"), (int, "int"), (Any, "Any"), (int | None, "None | int"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (OrderId, "OrderId"), (T, "T"), (Literal["a", 1], "Literal['a', 1]"), (Annotated[int, object()], "int"),
        (tuple[int, ...], "tuple[int, ...]"), (Box[Dog], "Box[Dog]"), (Iterable[str | int], "Iterable[int | str]"),
    ],
)  # fmt: skip
def test_types_are_named_without_modules(annotation, name: str):
    """P1.4: a class is the same when its module is run as a program."""
    assert type_name(annotation) == name


@pytest.mark.parametrize(
    ("annotation", "element"),
    [
        (Iterable[int], int), (list[Dog], Dog), (list, Any), (Any, Any), (tuple[int, ...], int),
        (tuple[int, str], int | str),
        (dict[str, int], str), (int, None), (str, None), (bytes, None), (Box[int], None),
    ],
)  # fmt: skip
def test_the_element_of_an_iterable_is_known(annotation, element):
    """P1.1."""
    assert element_of(annotation) == element
