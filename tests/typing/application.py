"""What type checkers make of an application in use. Never run: `mypy --strict` and pyright read it.

A line that must be an error carries an ignore with its code; mypy reports the ignore if the error goes away.
"""

from datetime import UTC, datetime, timedelta
from typing import assert_type

from windlass import JobCanceledError, JobContext, JobHandle, StopJob, Windlass

app = Windlass("sqlite://")


@app.job(retry_on=(ConnectionError, TimeoutError), give_up_on=KeyError, expires=60)
def charge(invoice: int) -> str:
    ctx = JobContext.current()
    assert_type(ctx.canceled, bool)
    return str(invoice)


@app.job
async def ping(host: str) -> int:
    return len(host)


@app.job
def with_context(invoice: int, ctx: JobContext | None = None) -> str:
    return str(invoice if ctx is None else ctx.attempt)


def context_parameter() -> None:
    assert_type(with_context.enqueue(7), JobHandle[str])
    assert_type(with_context(7), str)


def options() -> None:
    charge.using(retry_on=None, give_up_on=[KeyError], expires=timedelta(1)).enqueue(7)
    charge.using(expires=datetime(2030, 1, 1, tzinfo=UTC)).enqueue(7)
    charge.using(retry_on="ConnectionError")  # type: ignore[arg-type]
    charge.using(retry_on=ConnectionError())  # type: ignore[arg-type]
    charge.using(expires="soon")  # type: ignore[arg-type]


async def many_at_once() -> None:
    assert_type(app.enqueue_many([charge.bind(1), charge.bind(2)]), list[JobHandle[str]])
    mixed = app.enqueue_many([charge.bind(1), ping.bind("a")])
    for handle in mixed:
        handle.join()
    calls = (charge.bind(1), ping.bind("a"))
    await app.aenqueue_many(calls)
    app.enqueue_many([charge])  # type: ignore[arg-type]


def errors() -> None:
    try:
        assert_type(charge.enqueue(7).result(), str)
    except JobCanceledError as error:
        assert_type(error.reason, str)
    except StopJob:
        raise
