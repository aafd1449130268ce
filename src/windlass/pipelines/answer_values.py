"""Answers from outside: checked against the type that their step waits for, before anything is stored."""

from __future__ import annotations

from typing import Any

from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.pipelines.definition import Definition, PipelineStep
from windlass.pipelines.item_values import Values
from windlass.pipelines.step_types import type_name
from windlass.submission.error_text import short


def encoded_answer(definition: Definition, values: Values, step: PipelineStep, value: Any) -> tuple[int, str]:
    """Return the type and the stored form of an answer.

    It has the type that the step waits for, or is plain (a dict for a dataclass) and fits it. Raises
    `SerializationError` or `PayloadTooLargeError`.
    """
    where = f"the answer to step {step.name!r} of pipeline {definition.name}@{definition.version}"
    try:
        number = definition.type_of(step.index, value)
    except TypeError:
        number, value = _converted(definition, values, step, value, where)
    try:
        text = values.encode(number, value)
        values.decode(number, text)
    except PayloadTooLargeError as error:
        raise PayloadTooLargeError(f"{where}: {error}") from None
    except SerializationError as error:
        raise SerializationError(f"{where} must be {type_name(step.gives)}, got {short(value)}: {error}") from None
    return number, text


def _converted(definition: Definition, values: Values, step: PipelineStep, value: Any, where: str) -> tuple[int, Any]:
    """Return a plain value as the first of the step's types that it fits."""
    why = ""
    for number in definition.numbers_of(step.index):
        try:
            return number, values.converted(number, value)
        except PayloadTooLargeError as error:
            raise PayloadTooLargeError(f"{where}: {error}") from None
        except SerializationError as error:
            why = f": {error}"
    raise SerializationError(
        f"{where} must be {type_name(step.gives)}, got {short(value)} ({type(value).__name__}){why}; pass such a "
        "value, or plain data that fits it"
    )
