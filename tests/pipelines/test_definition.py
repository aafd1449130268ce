"""Definitions: the table of types, the hash, branches by type, and segments."""
# mypy: disable-error-code="empty-body"
# ^ the functions are declared and never called

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, NewType, Protocol, TypedDict

import pytest

from windlass.domain.key_policy import KeyPolicy
from windlass.domain.step_options import StepOptions
from windlass.pipelines.declare import Pipeline
from windlass.pipelines.definition import INPUT, Definition, Segment

OrderId = NewType("OrderId", int)


@dataclass
class Order:
    id: int


@dataclass
class Rush(Order):
    pass


@dataclass
class Line:
    number: int


class Row(TypedDict):
    id: int


class PricedRow(TypedDict):
    id: int
    price: float


class Closable(Protocol):
    def close(self) -> None: ...


class File:
    def close(self) -> None: ...


def pipeline(**options: Any) -> Pipeline:
    return Pipeline("orders", "1", defaults=StepOptions(), **options)


def of_types(takes: Any, gives: Any) -> Definition:
    """A pipeline with one step of these types."""
    orders = pipeline()

    def convert(value): ...

    convert.__annotations__ = {"value": takes, "return": gives}
    orders.step(convert)
    return orders.definition


def typical(*names: str, **options: Any) -> Pipeline:
    """Steps of each kind; the names replace those of functions, in order."""
    orders = pipeline(**options)

    def parse(raw: dict[str, Any]) -> Order: ...
    def lines(order: Order) -> Iterator[Line]: ...
    async def log(line: Line) -> str: ...
    def total(lines: Iterable[Line]) -> int: ...

    given = iter(names)
    for add, function in (
        (orders.step, parse), (orders.expand, lines), (orders.tap, log), (orders.reduce, total),
    ):  # fmt: skip
        add(name=next(given, None))(function)
    return orders


def test_the_target_names_pipeline_version_and_hash():
    """P1.4."""
    definition = typical().definition
    assert len(definition.hash) == 64
    assert definition.target == f"pipeline/orders@1#{definition.hash[:12]}"
    assert definition.items_target == f"{definition.target}/items"


def test_the_hash_stays_the_same_between_releases():
    """P1.4: a changed value would strand every running execution."""
    assert typical().definition.hash == "db4d7b5fb0e1c0c0ebb83873f8e3026777efab9642eb21a58b2dbe9cb9fa7e0f"


def test_the_hash_does_not_depend_on_bodies_and_options():
    """P1.4."""
    assert typical(retry_limit=9, queue="slow", dlq=False).definition.hash == typical().definition.hash


def test_the_hash_depends_on_names():
    """P1.4."""
    assert typical("read").definition.hash != typical().definition.hash


def test_the_hash_depends_on_kinds_order_and_types():
    """P1.4."""

    def first(order: Order) -> Order: ...
    def second(order: Order) -> Order: ...
    def other(order: Order) -> Rush: ...
    def wider(order: Order | None) -> Order: ...

    def built(*steps: tuple[str, Callable[..., Any]]) -> str:
        orders = pipeline()
        for kind, function in steps:
            getattr(orders, kind)(name=function.__name__.replace("other", "first").replace("wider", "first"))(function)
        return orders.definition.hash

    hashes = [
        built(("step", first), ("step", second)),
        built(("step", second), ("step", first)),
        built(("tap", first), ("step", second)),
        built(("step", other), ("step", second)),
        built(("step", wider), ("step", second)),
        built(("step", first)),
    ]
    assert len(set(hashes)) == len(hashes)


def test_the_hash_does_not_depend_on_what_a_tap_returns():
    """P1.4: it is ignored."""

    def log(order: Order) -> None: ...
    def count(order: Order) -> int: ...

    def built(function: Callable[..., Any]) -> str:
        orders = pipeline()
        orders.tap(name="look")(function)
        return orders.definition.hash

    assert built(log) == built(count)


def test_the_table_of_types_begins_with_the_input_and_has_each_type_once():
    """P1.1."""
    definition = typical().definition
    assert definition.types == (dict[str, Any], Order, Line, int)
    assert definition.input_type == dict[str, Any]
    assert definition.type_of(INPUT, {}) == 0
    assert [definition.type_of(index, value) for index, value in ((0, Order(1)), (1, Line(1)), (3, 5))] == [1, 2, 3]


def test_the_members_of_unions_have_numbers_of_their_own():
    """P1.2: two dataclasses are the same JSON."""
    definition = of_types(Order | Line, Line | None | Order)
    assert definition.types == (Order | Line, Line, Order, type(None))
    assert [definition.type_of(INPUT, value) for value in (Order(1), Line(1))] == [2, 1]
    assert [definition.type_of(0, value) for value in (Order(1), Line(1), None)] == [2, 1, 3]


def numbers(annotation: Any, *values: Any) -> list[Any]:
    """The types of the table that the values get."""
    definition = of_types(dict, annotation)
    return [definition.types[definition.type_of(0, value)] for value in values]


def test_the_most_specific_type_of_a_union_is_chosen():
    """P1.2."""
    assert numbers(Order | Rush, Rush(1), Order(1)) == [Rush, Order]
    assert numbers(int | bool, True, 1) == [bool, int]
    assert numbers(date | datetime, datetime(2026, 1, 1), date(2026, 1, 1)) == [datetime, date]  # noqa: DTZ001 - a type
    assert numbers(int | float, 1, 1.5) == [int, float]
    assert numbers(object | Order, Order(1)) == [object | Order]
    assert numbers(Literal["a"] | str, "a", "b") == [Literal["a"], str]
    assert numbers(Row | PricedRow, {"id": 1}, {"id": 1, "price": 2.0}) == [Row, PricedRow]
    assert numbers(Closable | File, File()) == [File]


def test_members_of_one_class_share_a_number():
    """P1.2: not their class distinguishes them, but the codec."""
    assert numbers(list[int] | list[str] | None, ["a"], None) == [list[int] | list[str], type(None)]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Any, Order(1)), (object, 1), (float, 1), (OrderId, 7), (Annotated[int, {"unit": "ms"}], 7),
        (dict[str, int], {}),
        (None, None), (Row, {"id": 1}), (Closable, File()), (Literal["a", "b"], "b"), (Order, Rush(1)),
    ],
)  # fmt: skip
def test_a_value_of_the_declared_type_gets_its_number(annotation, value):
    """P1.1."""
    assert of_types(bytes, annotation).type_of(0, value) == 1


@pytest.mark.parametrize(
    ("annotation", "value", "named"),
    [
        (Order, None, "give Order, got None (NoneType)"),
        (Order | Line, 5, "give Line | Order, got 5 (int)"),
        (list[int], (), "give list[int], got () (tuple)"),
        (Literal["a"], "b", "give Literal['a'], got 'b' (str)"),
        (Row, {}, "give Row, got {} (dict)"),
        (Closable, 5, "give Closable, got 5 (int)"),
    ],
)
def test_an_output_of_another_type_is_an_error_that_names_step_and_types(annotation, value, named: str):
    """P1.1."""
    with pytest.raises(TypeError) as caught:
        of_types(dict, annotation).type_of(0, value)
    assert f"pipeline orders@1: step 'convert' is annotated to {named}" in str(caught.value)


def test_an_input_of_another_type_is_an_error():
    """P1.1."""
    with pytest.raises(TypeError, match=r"pipeline orders@1 takes Order, got 'x{76}\.\.\. \(str\); pass such a value"):
        of_types(Order, int).type_of(INPUT, "x" * 100)


@pytest.mark.parametrize(
    ("takes", "taken", "passed"),
    [
        (Order, [Order(1), Rush(1)], [Line(1), None]),
        (Order | None, [Order(1), None], [Line(1)]),
        (Any, [1, None], []),
        (object, [1, None], []),
        (dict[str, int], [{}, {"a": "b"}], [[], None]),
        (float, [1.5, 1], ["1"]),
        (Literal[1], [1], [2, True]),
        (Annotated[int, "ms"], [1], ["1"]),
        (OrderId, [1], ["1"]),
        (Closable, [File()], [1]),
        (PricedRow, [{"id": 1, "price": 1}], [{"id": 1}, None]),
    ],
)
def test_a_step_accepts_items_of_its_type_only(takes, taken: list[Any], passed: list[Any]):
    """P1.2."""
    definition = of_types(takes, int)
    assert [definition.accepts(definition.steps[0], value) for value in taken + taken] == [True] * len(taken) * 2
    assert [definition.accepts(definition.steps[0], value) for value in passed + passed] == [False] * len(passed) * 2


def test_an_unannotated_step_accepts_everything():
    """P1.2."""
    orders = pipeline()
    orders.step(name="same")(lambda value: value)
    definition = orders.definition
    assert definition.types == (Any,)
    assert all(definition.accepts(definition.steps[0], value) for value in (1, None, Order(1)))


def test_steps_of_one_lane_are_one_segment_and_streams_are_alone():
    """P1.3."""
    orders = pipeline()

    def change(order: Order) -> Order: ...
    def split(order: Order) -> Iterator[Order]: ...
    def join(orders: Iterable[Order]) -> Order: ...
    def order_all(orders: Iterable[Order]) -> list[Order]: ...

    orders.step(name="a")(change)
    orders.expand(name="b")(split)
    orders.tap(name="c", circuit="stripe")(change)
    orders.step(name="d", circuit="stripe")(change)
    orders.step(name="e", circuit="stripe", resource="stripe")(change)
    orders.transform(name="f", resource="disk")(order_all)
    orders.step(name="g", resource="disk")(change)
    orders.reduce(name="h", resource="disk")(join)
    assert orders.definition.segments() == (
        Segment(0, 2, (None, None)),
        Segment(2, 4, ("stripe", None)),
        Segment(4, 5, ("stripe", "stripe")),
        Segment(5, 6, (None, "disk")),
        Segment(6, 7, (None, "disk")),
        Segment(7, 8, (None, "disk")),
    )


def test_options_of_the_pipeline_are_read_from_its_definition():
    """P1.3."""
    definition = typical(
        dlq=False, max_rejected=0.05, include_payload=True, subscribe="invoices", key_policy=KeyPolicy.SERVER_KEY
    ).definition
    assert (definition.dlq, definition.max_rejected, definition.include_payload) == (False, 0.05, True)
    assert (definition.subscribe, definition.key_policy) == ("invoices", KeyPolicy.SERVER_KEY)
