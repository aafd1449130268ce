"""Jobs that have callbacks, and callbacks; they note down what they were called with."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from tests.engine.jobs import seen
from windlass import JobContext, JobFailedError, JobResult


class Size(Enum):
    SMALL = "small"


@dataclass(frozen=True)
class Order:
    number: int
    at: datetime
    size: Size = Size.SMALL


def double(number: int) -> int:
    return number * 2


def ship(order: Order, *, copies: int = 1) -> list[Order]:
    return [order] * copies


def fail(message: str) -> None:
    raise ValueError(message)


def fail_twice() -> str:
    attempt = JobContext.current().attempt
    if attempt < 3:
        raise ConnectionError(f"attempt {attempt}")
    return "at last"


def too_much() -> str:
    return "x" * 100_000


def report(result: JobResult) -> None:
    seen.append(result)


async def areport(result: JobResult) -> None:
    seen.append(result)


def report_untyped(result):
    """Without annotations on purpose."""
    seen.append(result)


def context_and_error(ctx, error):
    """As in the seed."""
    seen.append((ctx, error))


def typed_context_and_error(ctx: JobResult, error: JobFailedError) -> None:
    seen.append((ctx, error))


def context_and_any_error(ctx: JobResult, error: Exception) -> None:
    seen.append((ctx, error))


def context_and_text(ctx: JobResult, error: str) -> None:
    seen.append((ctx, error))


def take_value(value: int, note: str) -> None:
    seen.append((value, note))


def take_orders(orders: list[Order], at: datetime) -> None:
    seen.append((orders, at))


def take_outcome(note: str, result: JobResult | None = None) -> None:
    seen.append((note, result))


def take_mapping(value: Any, facts: dict[str, str]) -> None:
    seen.append((value, facts))


def fail_on(result: JobResult) -> None:
    seen.append(result.job_id)
    raise RuntimeError("the callback is broken")


def where_am_i(result: JobResult) -> None:
    context = JobContext.current()
    seen.append((context.queue, context.correlation_id, context.tags, context.params, result.job_id))


def needs_nothing() -> None:
    """No callback: takes nothing."""


def needs_three(a: Any, b: Any, c: Any) -> None:
    """No callback: takes too much."""


def needs_a_name(result: JobResult, *, name: str) -> None:
    """No callback: requires more arguments than it gets."""


def needs_a_number(number: int) -> None:
    """No callback as it is: a JobResult is no number."""


def wants_the_context(ctx: JobContext, error: Exception) -> None:
    """No callback: the context of a run that is over cannot be handed on."""
