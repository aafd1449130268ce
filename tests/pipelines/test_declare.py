"""Declaring pipelines: decorators, forms of functions, names, options, and when a declaration is final."""
# mypy: disable-error-code="empty-body"
# ^ the functions are declared and never called

import functools
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import Any

import pytest

from windlass import JobContext
from windlass.domain.key_policy import KeyPolicy
from windlass.domain.priority import Priority
from windlass.domain.step_options import StepOptions
from windlass.errors import ConfigurationError, InvalidOptionError, SerializationError
from windlass.pipelines.declare import Pipeline
from windlass.pipelines.definition import PipelineStep, StepKind


def pipeline(name: str = "orders", version: str = "1", **options: Any) -> Pipeline:
    return Pipeline(name, version, defaults=StepOptions(), **options)


def declared(kind: str, function: Any, **options: Any) -> PipelineStep:
    """The only step of a pipeline."""
    orders = pipeline()
    getattr(orders, kind)(**options)(function)
    return orders.definition.steps[0]


def test_decorated_functions_remain_plain_functions():
    """P1.1."""
    orders = pipeline()

    @orders.step
    def double(number: int) -> int:
        return number * 2

    @orders.step(retry_limit=1, name="text")
    def show(number: int) -> str:
        return str(number)

    assert (double(2), show(2)) == (4, "2")
    steps = orders.definition.steps
    assert [(step.index, step.name, step.function) for step in steps] == [(0, "double", double), (1, "text", show)]
    assert repr(orders) == "<Pipeline orders@1: double, text>"


def test_a_mismatch_is_raised_where_the_step_is_declared_and_the_step_is_not_added():
    """P1.1."""
    orders = pipeline()

    @orders.step
    def parse(raw: dict) -> str: ...

    with pytest.raises(ConfigurationError, match="step 'price' takes int, but step 'parse' gives str"):

        @orders.step
        def price(number: int) -> int: ...

    assert [step.name for step in orders.definition.steps] == ["parse"]


def test_types_that_come_later_are_checked_when_the_pipeline_is_built():
    """P1.1."""
    orders = pipeline()

    @orders.step
    def parse(raw: dict) -> "Later": ...  # type: ignore[name-defined]  # noqa: F821 - that is the test

    @orders.step
    def price(number: int) -> int: ...

    with pytest.raises(SerializationError, match="Later"):
        _ = orders.definition
    globals()["Later"] = str
    try:
        with pytest.raises(ConfigurationError, match="step 'price' takes int, but step 'parse' gives str"):
            _ = orders.definition
    finally:
        del globals()["Later"]


def test_a_definition_is_made_once_and_nothing_is_added_after_it():
    """P1.1."""
    orders = pipeline()

    @orders.step
    def parse(raw: dict) -> str: ...

    assert orders.definition is orders.definition
    with pytest.raises(ConfigurationError, match="step 'late' must be added before the pipeline is used"):
        orders.step(name="late")(parse)


def test_a_pipeline_without_steps_cannot_be_used():
    """P1.1."""
    with pytest.raises(ConfigurationError, match="pipeline orders@1 must have at least one step, got none"):
        _ = pipeline().definition


def test_names_of_steps_are_unique():
    """P1.1."""
    orders = pipeline()

    @orders.step
    def parse(raw: dict) -> dict: ...

    with pytest.raises(ConfigurationError, match="already a step 'parse'"):
        orders.step(parse)
    orders.step(name="again")(parse)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a@1", "a#1", "a:b", "ü", "x" * 101, None, 5])
def test_a_name_that_is_no_label_is_refused(name):
    """P1.1."""
    with pytest.raises(InvalidOptionError, match="name of a pipeline must be 1 to 100 characters of A-Z a-z 0-9"):
        pipeline(name)
    pipeline("A-z_0.9" + "x" * 93)


@pytest.mark.parametrize("version", ["", "1/2", "x" * 51, 1])
def test_a_version_that_is_no_label_is_refused(version):
    """P1.1."""
    with pytest.raises(InvalidOptionError, match="version of pipeline orders must be 1 to 50 characters"):
        pipeline("orders", version)


def test_a_version_that_is_a_number_is_suggested_as_text():
    with pytest.raises(InvalidOptionError, match="got 1; did you mean '1'"):
        pipeline("orders", 1)  # type: ignore[arg-type]


def test_a_step_that_is_not_a_named_function_is_refused():
    """P1.1."""
    orders = pipeline()
    with pytest.raises(InvalidOptionError, match=r"got 'parse'; write @orders\.step\(name='parse'\)"):
        orders.step("parse")  # type: ignore[call-overload]
    with pytest.raises(InvalidOptionError, match="must be given a function, got 5"):
        orders.step(5)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptionError, match="must be given a function, got <class 'int'>"):
        orders.step(int)
    with pytest.raises(InvalidOptionError, match="must have a name"):
        orders.step(functools.partial(max, 1))
    with pytest.raises(InvalidOptionError, match="name of a step must be"):
        orders.step(lambda value: value)


def test_options_of_a_step_win_over_those_of_the_pipeline_and_these_over_the_defaults():
    """P1.3."""
    orders = Pipeline(
        "orders", "1", defaults=StepOptions(retry_limit=1, buffer=1, concurrency=1), retry_limit=2, buffer=2
    )

    @orders.step(buffer=3)
    def parse(raw: dict) -> str: ...

    options = orders.definition.steps[0].options
    assert (options.concurrency, options.retry_limit, options.buffer, options.retry_wait) == (1, 2, 3, 1.0)


def test_bad_options_are_refused_when_declared():
    """P1.3."""
    orders = pipeline()
    with pytest.raises(InvalidOptionError, match=r"pipeline orders@1: step 'parse': concurrency must be .* got 0"):

        @orders.step(concurrency=0)
        def parse(raw: dict) -> str: ...

    with pytest.raises(InvalidOptionError, match="unknown option 'retry_limt'; did you mean 'retry_limit'"):
        orders.step(name="x", retry_limt=1)(len)  # type: ignore[call-overload]


def test_options_of_a_pipeline_have_defaults():
    """P1.3."""
    options = pipeline().options
    assert (options.dlq, options.max_rejected, options.include_payload, options.subscribe) == (True, None, None, None)
    assert (options.key_policy, options.tenants, options.require_tenant) == (KeyPolicy.OPTIONAL_KEY, None, False)
    assert (options.tenant_concurrency, options.queue, options.priority) == (None, "default", Priority.NORMAL)


def test_options_of_a_pipeline_are_kept_in_one_form():
    """P1.3."""
    options = pipeline(
        tenants=["acme", "acme"],
        key_policy="KEY_REQUIRED",
        priority=Priority.HIGH,
        max_rejected=0,
        tenant_concurrency=3,
    ).options
    assert (options.tenants, options.key_policy) == (frozenset({"acme"}), KeyPolicy.KEY_REQUIRED)
    assert (options.priority, options.max_rejected, options.tenant_concurrency) == (3, 0, 3)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("dlq", 1, "True or False"), ("require_tenant", None, "True or False"),
        ("include_payload", 1, "True, False, or None"),
        ("max_rejected", -1, "an int from 0 on"), ("max_rejected", 1.0, "a float between 0 and 1"),
        ("max_rejected", 0.0, "a float between 0 and 1"), ("max_rejected", True, "max_rejected=10"),
        ("key_policy", "NO_KEY", "KeyPolicy.OPTIONAL_KEY, KeyPolicy.KEY_REQUIRED"),
        ("tenants", "acme", "a collection"), ("tenants", [], "leave it out to allow all"),
        ("tenants", [5], "a tenant must"),
        ("tenant_concurrency", 0, "from 1 on"), ("queue", "a b", "a-b"), ("priority", 10, "0 to 9"),
        ("subscribe", "a/b", "did you mean 'a-b'"), ("retry_limit", -1, "from 0"),
        ("quue", "a", "did you mean 'queue'"),
    ],
)  # fmt: skip
def test_a_bad_option_of_a_pipeline_is_refused(option: str, value: Any, expected: str):
    """P1.3."""
    with pytest.raises(InvalidOptionError) as caught:
        pipeline(**{option: value})
    assert str(caught.value).startswith("pipeline orders@1: ")
    assert expected in str(caught.value)
    assert option in str(caught.value)


def generate(number: int) -> Iterator[str]:
    yield str(number)


def generate_typed(number: int) -> Generator[str, None, None]:
    yield str(number)


async def generate_async(number: int) -> AsyncIterator[str]:
    yield str(number)


def give_list(number: int) -> list[str]: ...
def give_async(number: int) -> AsyncIterable[str]: ...
async def give_later(number: int) -> list[str]: ...


@pytest.mark.parametrize(
    ("function", "is_coroutine", "is_async"),
    [
        (generate, False, False),
        (generate_typed, False, False),
        (generate_async, False, True),
        (give_list, False, False),
        (give_async, False, True),
        (give_later, True, True),
    ],
)
def test_an_expansion_yields_or_returns_items(function, is_coroutine: bool, is_async: bool):
    """P1.1."""
    step = declared("expand", function)
    assert (step.takes, step.gives, step.kind) == (int, str, StepKind.EXPAND)
    assert (step.is_coroutine, step.is_async) == (is_coroutine, is_async)


def wrong_scalar(number: int) -> int: ...
def wrong_text(number: int) -> str: ...
def wrong_generator(number: int) -> AsyncIterator[int]:  # type: ignore[misc]
    yield number


async def wrong_async(number: int) -> Iterator[int]:  # type: ignore[misc]
    yield number


@pytest.mark.parametrize(
    ("kind", "function", "expected"),
    [
        ("expand", wrong_scalar, "must give several items, so its return annotation must be an iterable"),
        ("expand", wrong_text, "got str; correct it, or declare it as a step"),
        ("expand", wrong_generator, "write Iterator"),
        ("expand", wrong_async, "write AsyncIterator"),
        ("step", generate, "its function yields; declare it as expand"),
        ("tap", generate_async, "its function yields; declare it as expand"),
        ("reduce", give_list, "so number must be an Iterable, Iterator, Sequence, list or AsyncIterable, got int"),
    ],
)
def test_a_function_of_another_form_is_refused(kind: str, function: Any, expected: str):
    """P1.1."""
    with pytest.raises(ConfigurationError) as caught:
        declared(kind, function)
    assert expected in str(caught.value)
    assert f"{kind} {function.__name__!r}" in str(caught.value)


def sum_all(items: Iterable[int]) -> str: ...
def sum_list(items: list[int]) -> str: ...
def sum_sequence(items: Sequence[int]) -> str: ...
async def sum_async(items: AsyncIterable[int]) -> str: ...


@pytest.mark.parametrize(
    ("function", "async_stream", "wants_list"),
    [(sum_all, False, False), (sum_list, False, True), (sum_sequence, False, True), (sum_async, True, False)],
)
def test_a_reduction_takes_elements_of_an_iterable(function, async_stream: bool, wants_list: bool):
    """P1.1."""
    step = declared("reduce", function)
    assert (step.takes, step.gives) == (int, str)
    assert (step.async_stream, step.wants_list, step.is_async) == (async_stream, wants_list, async_stream)


async def sum_blocking(items: Iterable[int]) -> str: ...
async def sum_unknown(items) -> str: ...
def sum_without_loop(items: AsyncIterable[int]) -> str: ...
def sum_nothing() -> str: ...
def sum_generator(items: Iterable[int]) -> Iterator[str]:
    yield ""


async def change_blocking(items: Iterable[int]) -> AsyncIterator[str]:
    yield ""


@pytest.mark.parametrize(
    ("kind", "function", "expected"),
    [
        (
            "reduce",
            sum_blocking,
            "must be an AsyncIterable, got Iterable[int]: reading the items otherwise would block",
        ),
        ("reduce", sum_unknown, "write e.g. items: AsyncIterable[Any]"),
        ("reduce", sum_without_loop, "make it an async def, or take an Iterable"),
        ("reduce", sum_nothing, "must have a parameter for the items"),
        ("reduce", sum_generator, "declare it as transform"),
        ("transform", change_blocking, "must be an AsyncIterable"),
    ],
)
def test_a_stream_that_the_function_cannot_read_is_refused(kind: str, function: Any, expected: str):
    """P1.1."""
    with pytest.raises(ConfigurationError) as caught:
        declared(kind, function)
    assert expected in str(caught.value)


def test_a_transform_takes_and_gives_elements():
    """P1.1."""

    def sort(items: Iterable[int]) -> Iterator[str]:
        yield from map(str, sorted(items))

    async def change(items: AsyncIterable[int]) -> AsyncIterator[str]:
        async for item in items:
            yield str(item)

    plain, on_loop = declared("transform", sort), declared("transform", change)
    assert (plain.takes, plain.gives, plain.is_async, plain.async_stream) == (int, str, False, False)
    assert (on_loop.takes, on_loop.gives, on_loop.is_async, on_loop.async_stream) == (int, str, True, True)
    assert not on_loop.is_coroutine


def test_a_context_is_no_input():
    """P1.1, J10.5."""

    def price(context: JobContext, number: int, rate: float = 2.0) -> float: ...
    def start(context: JobContext) -> int: ...

    step = declared("step", price)
    assert (step.takes, step.has_input, [parameter.name for parameter in step.contexts]) == (int, True, ["context"])
    alone = declared("step", start)
    assert (alone.takes, alone.has_input, len(alone.contexts)) == (Any, False, 1)


def test_a_step_that_requires_more_than_its_input_is_refused():
    """P1.1."""

    def price(number: int, rate: float) -> float: ...
    def convert(number: int, *, to: str) -> float: ...

    with pytest.raises(ConfigurationError, match=r"must have one parameter, for its input, .* also requires rate;"):
        declared("step", price)
    with pytest.raises(ConfigurationError, match="also requires to;"):
        declared("step", convert)


def test_objects_and_partials_are_steps_under_a_given_name():
    """P1.1."""

    class Pricer:
        async def __call__(self, number: int) -> str: ...

    def scale(factor: int, number: int) -> int: ...

    step = declared("step", Pricer(), name="price")
    assert (step.takes, step.gives, step.is_coroutine, step.is_async) == (int, str, True, True)
    assert declared("step", functools.partial(scale, 2), name="scale").has_input


def test_a_tap_gives_nothing_on():
    """P1.1."""
    orders = pipeline()
    orders.tap(wrong_scalar)
    orders.step(wrong_text)
    assert orders.definition.types == (int, str)
