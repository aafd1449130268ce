"""From a function to a step: what it takes and gives by its annotations, and how it is called."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from windlass.domain.step_options import StepOptions
from windlass.errors import ConfigurationError
from windlass.pipelines.definition import PipelineStep, StepKind
from windlass.pipelines.step_types import (
    element_of,
    is_anything,
    is_async_stream,
    is_list,
    is_stream,
    type_name,
)
from windlass.submission.signature import CallSpec, Parameter, call_spec


class NotGiven:
    """The type of an answer that is that of the next step's input."""


NOT_GIVEN: Final = NotGiven


class Outside(NamedTuple):
    """How a step waits for the outside."""

    seconds: float = 0.0
    answer: Any = NOT_GIVEN
    """The type of the answer."""


NOT_OUTSIDE: Final = Outside()


def make_step(
    index: int,
    name: str,
    kind: StepKind,
    function: Callable[..., Any],
    options: StepOptions,
    outside: Outside = NOT_OUTSIDE,
    *,
    where: str,
) -> PipelineStep:
    """Return a function as a step; `where` names its pipeline in errors.

    Raises `SerializationError` if its annotations cannot be resolved (yet).
    """
    where = f"{where}: {kind.value} {name!r}"
    body = _body_of(function)
    spec = call_spec(function)
    given = _input_of(spec, where)
    takes = Any if given is None else given.annotation
    is_async = _runs_on_loop(body, spec.returns, kind)
    _check_form(body, kind, where)
    if kind.takes_stream:
        _check_stream(given, is_async=is_async, where=where)
    return PipelineStep(
        index=index,
        name=name,
        kind=kind,
        function=function,
        is_coroutine=inspect.iscoroutinefunction(body),
        is_async=is_async,
        takes=element_of(takes) if kind.takes_stream else takes,
        gives=outside.answer if kind is StepKind.AWAIT else _output_of(spec.returns, kind, body, where),
        contexts=spec.contexts,
        has_input=given is not None,
        options=options,
        spec=spec,
        async_stream=kind.takes_stream and is_async_stream(takes),
        wants_list=kind.takes_stream and is_list(takes),
        request=spec.returns if kind is StepKind.AWAIT else Any,
        wait=outside.seconds,
    )


def with_answers(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """Return steps of which those that wait outside, and name no type of their answer, have that of the next step."""
    found: list[PipelineStep] = []
    for step in steps:
        if step.gives is NOT_GIVEN:
            following = (
                one.takes for one in steps[step.index + 1 :] if not (one.passes_input_on and is_anything(one.takes))
            )
            step = replace(step, gives=next(following, Any))
        found.append(step)
    return found


def _body_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function whose code runs: behind a partial, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _runs_on_loop(body: Callable[..., Any], returns: Any, kind: StepKind) -> bool:
    if inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        return True
    return kind.gives_stream and is_async_stream(returns)


def _input_of(spec: CallSpec, where: str) -> Parameter | None:
    """Return the parameter of the input; all others must have a default."""
    given = spec.positional[0] if spec.positional else spec.var_positional
    others = spec.required - ({given.name} if given else set())
    if not others:
        return given
    raise ConfigurationError(
        f"{where} must have one parameter, for its input, but {spec.name}{spec.signature} also requires "
        f"{', '.join(sorted(others))}; give the others defaults, or annotate one with JobContext to get the context"
    )


def _check_form(body: Callable[..., Any], kind: StepKind, where: str) -> None:
    yields = inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body)
    if yields and not kind.gives_stream:
        other = "transform" if kind is StepKind.REDUCE else "expand"
        raise ConfigurationError(f"{where} must return one value, but its function yields; declare it as {other}")


def _check_stream(given: Parameter | None, *, is_async: bool, where: str) -> None:
    if given is None:
        raise ConfigurationError(f"{where} must have a parameter for the items, e.g. items: Iterable[Line]; add one")
    takes, name = given.annotation, given.name
    known = not is_anything(takes)
    if known and not is_stream(takes):
        raise ConfigurationError(
            f"{where} takes all items, so {name} must be an Iterable, Iterator, Sequence, list or AsyncIterable, "
            f"got {type_name(takes)}; write e.g. {name}: Iterable[{type_name(takes)}], or declare it as a step"
        )
    if is_async and not is_async_stream(takes):
        raise ConfigurationError(
            f"{where} runs on the event loop, so {name} must be an AsyncIterable, got "
            f"{type_name(takes) if known else 'no such annotation'}: reading the items otherwise would block the loop; "
            f"write e.g. {name}: AsyncIterable[{type_name(element_of(takes))}] and async for, or make it a plain def"
        )
    if not is_async and is_async_stream(takes):
        raise ConfigurationError(
            f"{where} is a plain def, so {name} must be an Iterable, got {type_name(takes)}; "
            "make it an async def, or take an Iterable"
        )


def _output_of(returns: Any, kind: StepKind, body: Callable[..., Any], where: str) -> Any:
    if kind is StepKind.TAP:
        return Any
    if not kind.gives_stream:
        return returns
    element = element_of(returns)
    if element is None:
        raise ConfigurationError(
            f"{where} must give several items, so its return annotation must be an iterable, e.g. Iterator[Line], "
            f"AsyncIterator[Line] or list[Line], got {type_name(returns)}; correct it, or declare it as a step"
        )
    if not is_anything(returns):
        _check_generator(returns, body, where)
    return element


def _check_generator(returns: Any, body: Callable[..., Any], where: str) -> None:
    is_async = is_async_stream(returns)
    if inspect.isgeneratorfunction(body) and is_async:
        raise ConfigurationError(
            f"{where} yields in a plain def, but is annotated {type_name(returns)}; write Iterator"
        )
    if inspect.isasyncgenfunction(body) and not is_async:
        raise ConfigurationError(
            f"{where} yields in an async def, but is annotated {type_name(returns)}; write AsyncIterator"
        )
