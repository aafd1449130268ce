"""What type checkers make of the public surface. Never run: `mypy --strict` reads it, and that is the test.

A line that must be an error carries an ignore with its code; mypy reports the ignore if the error goes away.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, assert_type, overload

from windlass.domain.job_result import RESULT, JobResult
from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.submission.call import Call
from windlass.submission.handle import JobHandle
from windlass.submission.job_function import AsyncJobFunction, Enqueueable, JobDecorator, JobFunction

P = ParamSpec("P")
R = TypeVar("R")


class App:
    """The faces an application has for declaring and binding; bodies do not matter here."""

    @overload
    def job(  # type: ignore[overload-overlap]  # a coroutine is a result too; the first match is meant
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, **options: Unpack[JobOptionsDict]) -> JobDecorator: ...
    def job(self, *function: Any, **options: Any) -> Any:
        raise NotImplementedError

    @overload
    def bind(self, function: Enqueueable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def bind(self, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def bind(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def bind(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Call[R]: ...
    @overload
    def bind(self, function: Callable[Concatenate[Any, P], R], /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    def bind(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


app = App()


@app.job
def charge(invoice: int, note: str = "") -> str:
    return f"charged {invoice} {note}"


@app.job(max_retries=3)
async def mail(to: str, *, copies: int = 1) -> list[int]:
    return [len(to), copies]


class Payments:
    @app.job
    def refund(self, invoice: int) -> float:
        return float(invoice)

    @app.job
    async def settle(self, invoice: int) -> bytes:
        return bytes(invoice)

    @app.job
    @staticmethod
    def static_below(invoice: int) -> str:
        return str(invoice)

    @staticmethod
    @app.job
    def static_above(invoice: int) -> str:
        return str(invoice)

    @app.job
    @classmethod
    def class_below(cls, invoice: int) -> str:
        return str(invoice)

    @classmethod
    @app.job
    def class_above(cls, invoice: int) -> str:
        return str(invoice)

    def plain(self, invoice: int) -> float:
        return float(invoice)


def plain(invoice: int) -> str:
    return str(invoice)


async def plain_coroutine(invoice: int) -> str:
    return str(invoice)


def functions() -> None:
    assert_type(charge(42), str)
    assert_type(charge.enqueue(42), JobHandle[str])
    assert_type(charge.enqueue(42).result(timeout=10), str)
    assert_type(charge.bind(42, note="x"), Call[str])
    assert_type(charge.bind(42).using(delay=60).enqueue(), JobHandle[str])
    assert_type(charge.using(queue="billing").enqueue(42), JobHandle[str])
    assert_type(charge.using(connection=object()).enqueue(42), JobHandle[str])
    assert_type(charge.handle("0190"), JobHandle[str])
    assert_type(charge.target, str)
    assert_type(charge.options, JobOptions)
    charge("42")  # type: ignore[arg-type]
    charge.enqueue("42")  # type: ignore[arg-type]
    charge.enqueue()  # type: ignore[call-arg]
    charge.enqueue(42, unknown=1)  # type: ignore[call-arg]
    charge.bind(42, note=7)  # type: ignore[arg-type]
    charge.using(delay=60).enqueue("42")  # type: ignore[arg-type]
    charge.using(unknown_option=1)  # type: ignore[call-arg]
    charge.using(queue=7)  # type: ignore[arg-type]
    charge.bind(1).using(tags=7)  # type: ignore[arg-type]


async def coroutines() -> None:
    assert_type(await mail("a@b"), list[int])
    assert_type(mail.enqueue("a@b", copies=2), JobHandle[list[int]])
    assert_type(await mail.aenqueue("a@b"), JobHandle[list[int]])
    assert_type(await (await mail.aenqueue("a@b")).aresult(), list[int])
    assert_type(await mail.using(delay=1).aenqueue("a@b"), JobHandle[list[int]])
    mail.enqueue("a@b", 2)  # type: ignore[call-arg]
    mail("a@b")  # type: ignore[unused-coroutine]
    mail.aenqueue("a@b")  # type: ignore[unused-coroutine]


async def methods(payments: Payments) -> None:
    assert_type(Payments.refund.enqueue(7), JobHandle[float])
    assert_type(payments.refund(7), float)
    assert_type(payments.refund.enqueue(7), JobHandle[float])
    assert_type(Payments.settle.enqueue(7), JobHandle[bytes])
    assert_type(await payments.settle(7), bytes)
    Payments.refund.enqueue("7")  # type: ignore[arg-type]
    Payments.refund.enqueue(payments, 7)  # type: ignore[call-arg, arg-type]
    payments.refund()  # type: ignore[call-arg]


def static_and_class_methods(payments: Payments) -> None:
    assert_type(Payments.static_below.enqueue(7), JobHandle[str])
    assert_type(Payments.static_above.enqueue(7), JobHandle[str])
    assert_type(payments.static_above(7), str)
    assert_type(Payments.class_below.enqueue(7), JobHandle[str])
    assert_type(Payments.class_below(7), str)
    assert_type(Payments.class_above.enqueue(7), JobHandle[str])


def binding(payments: Payments) -> None:
    assert_type(app.bind(plain, 7), Call[str])
    assert_type(app.bind(plain_coroutine, 7), Call[str])
    assert_type(app.bind(charge, 7, note="x"), Call[str])
    assert_type(app.bind(Payments.refund, 7), Call[float])
    assert_type(app.bind(Payments.plain, 7), Call[float])
    assert_type(app.bind(Payments.plain, invoice=7).enqueue().result(), float)
    app.bind(plain, "7")  # type: ignore[call-overload]


@app.job
def report(result: JobResult) -> None:
    assert_type(result.value, Any)
    assert_type(result.error, str | None)


@app.job(on_success=report, on_failure=charge.bind(RESULT, note="x"))
async def with_callbacks(invoice: int) -> int:
    return invoice


def failed(ctx: JobResult, error: Exception) -> None:
    assert_type(ctx.tags, tuple[str, ...])


def callbacks() -> None:
    assert_type(with_callbacks.using(on_success=None).enqueue(7), JobHandle[int])
    charge.using(on_success=plain, on_failure=failed)
    charge.using(on_success=mail.bind(RESULT), on_failure=app.bind(Payments.refund, RESULT))
    charge.bind(7).using(on_success=report)
    charge.using(on_success=7)  # type: ignore[arg-type]
    charge.using(on_success="report")  # type: ignore[arg-type]
    charge.using(on_failure=report.using(queue="ops"))  # type: ignore[arg-type]
    charge.bind(note=RESULT)  # type: ignore[call-arg]
