"""`ctx: JobContext` as a parameter: filled in where the body runs, and no argument of the job."""

import inspect
from typing import Annotated, Any, Optional

import pytest

from tests.engine.apps import LONG, Apps, Shop
from windlass import JobContext, Windlass
from windlass.submission.context_parameters import with_context
from windlass.submission.signature import call_spec


def first(ctx: JobContext, number: int) -> list[Any]:
    return [ctx.attempt, ctx is JobContext.current(), number]


async def last(number: int, *, ctx: "JobContext") -> list[Any]:
    return [ctx.attempt, ctx is JobContext.current(), number]


def between(a: int, ctx: JobContext, b: int = 2, *more: int, c: int = 3) -> list[Any]:
    return [a, ctx.attempt, b, list(more), c]


def optional(number: int, ctx: JobContext | None = None) -> list[Any]:
    return [None if ctx is None else ctx.attempt, number]


def nothing_else(ctx: JobContext) -> int:
    return ctx.attempt


class Payments:
    def refund(self, ctx: JobContext, number: int) -> list[Any]:
        return [type(self).__name__, ctx.attempt, number]

    @classmethod
    def settle(cls, number: int, ctx: JobContext) -> list[Any]:
        return [cls.__name__, ctx.attempt, number]

    @staticmethod
    def check(ctx: JobContext, number: int) -> list[Any]:
        return [ctx.attempt, number]


PROGRAM = """
from __future__ import annotations
from windlass import JobContext, Windlass

app = Windlass({url!r})


@app.job(executor="process")
def charge(ctx: JobContext, number: int) -> list:
    return [str(ctx.job_id), ctx is JobContext.current(), number]


@app.job(executor="process")
async def acharge(number: int, ctx: JobContext) -> list:
    return [str(ctx.job_id), ctx is JobContext.current(), number]
"""


def test_the_context_is_filled_in_at_any_position(apps: Apps):
    """J10.5: callers do not give it; functions, coroutines and methods of every kind."""
    app = apps(allow=[__name__])
    with app.worker():
        calls = [
            (app.bind(first, 7), [1, True, 7]),
            (app.bind(first, number=7), [1, True, 7]),
            (app.bind(last, 7), [1, True, 7]),
            (app.bind(between, 1), [1, 1, 2, [], 3]),
            (app.bind(between, 1, 5, 6, 7, c=8), [1, 1, 5, [6, 7], 8]),
            (app.bind(between, b=5, a=4), [4, 1, 5, [], 3]),
            (app.bind(optional, 7), [1, 7]),
            (app.bind(nothing_else), 1),
            (app.bind(Payments.refund, 7), ["Payments", 1, 7]),
            (app.bind(Payments.settle, 7), ["Payments", 1, 7]),
            (app.bind(Payments.check, 7), [1, 7]),
        ]
        handles = app.enqueue_many([call for call, _ in calls])
        assert [handle.result(LONG) for handle in handles] == [expected for _, expected in calls]
    assert [app.get(handle.id).args for handle in handles[:2]] == [(7,), ()]


def test_the_context_is_filled_in_in_a_process(shop: Shop, sqlite_url: str):
    """J10.5: also where annotations are texts."""
    module = shop.load(PROGRAM.format(url=sqlite_url))
    with module.app.worker():
        for job in (module.charge, module.acharge):
            handle = job.enqueue(7)
            assert handle.result(90) == [str(handle.id), True, 7]
    module.app.close()


def test_passing_the_context_is_refused_with_the_signature(app: Windlass):
    """J10.5: the parameter is left out of what callers bind."""
    job: Any = app.job(first)
    with pytest.raises(
        TypeError, match=r"first\(\): got an unexpected keyword argument 'ctx'; .* first\(number: int\)"
    ):
        job.enqueue(7, ctx=None)
    with pytest.raises(TypeError, match="too many positional arguments"):
        job.enqueue(None, 7)


def test_outside_of_a_job_the_function_is_called_as_it_is_written(app: Windlass):
    """J10.5: with the context given, or with its default."""
    assert app.job(optional)(7) == [None, 7]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        app.job(first)(7)  # type: ignore[call-arg, arg-type]


def test_only_the_context_itself_is_filled_in():
    """J10.5: alone, or as one that may be None."""

    def several(
        a: Annotated[JobContext, "x"],
        b: Optional[JobContext],  # noqa: UP045 - the older spelling
        c: list[JobContext],
        d: Any,
        *e: JobContext,
    ) -> None: ...

    spec = call_spec(several)
    assert [parameter.name for parameter in spec.contexts] == ["a", "b"]
    assert list(spec.signature.parameters) == ["c", "d", "e"]
    assert call_spec(Payments.check).contexts[0].position == 0


def test_arguments_bind_with_the_context_among_them():
    """J10.5: however the others are given."""
    context: Any = object()
    spec = call_spec(between)
    for args, kwargs in (((1,), {}), ((1, 2), {}), ((1, 2, 3, 4), {"c": 5}), ((), {"a": 1, "b": 2})):
        filled = with_context(spec.contexts, context, args, kwargs)
        bound = inspect.signature(between).bind(*filled[0], **filled[1])
        assert bound.arguments["ctx"] is context
        assert bound.arguments["a"] == 1
