"""Assertions about enqueued jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from windlass.app import Windlass
from windlass.domain.job import Job
from windlass.errors import InvalidOptionError
from windlass.submission.call import Call
from windlass.submission.signature import CallSpec
from windlass.submission.submitter import Submitter
from windlass.submission.target import Known
from windlass.testing.isolation import app_under_test

Expected = Callable[..., Any] | Call[Any] | str
"""A job, a call (`charge.bind(42)`), a function that `allow` permits, or the name of one (`"shop:charge"`)."""

PAGE = 1_000
MAX_SHOWN = 20


def enqueued(app: Windlass | None = None, job: Expected | None = None, *, queue: str | None = None) -> list[Job]:
    """Return all jobs in the store, or those of one job or queue, in the order of enqueueing, in any state."""
    app = app or _app_of(job)
    target = None if job is None else _target(app, job)
    found: list[Job] = []
    cursor: str | None = None
    while True:
        page = app.find(target=target, queue=queue, cursor=cursor, limit=PAGE)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return sorted(found, key=lambda one: one.id)


def assert_enqueued(
    job: Expected,
    /,
    *args: Any,
    queue: str | None = None,
    count: int | None = None,
    app: Windlass | None = None,
    **kwargs: Any,
) -> Job:
    """Fail unless a job was enqueued, with these arguments if any are given; return the first match.

    ```python
    assert_enqueued(charge)                          # with whatever arguments
    assert_enqueued(charge, 42, queue="billing")     # the same as charge(invoice_id=42)
    assert_enqueued(charge, ANY, count=3)            # exactly three; ANY is that of unittest.mock
    assert_enqueued(charge.bind(42))                 # where arguments are called queue, count or app
    ```

    Arguments are compared as the function would get them, defaults filled in. Whether the job has run does not matter.
    """
    if count is not None and count < 1:
        raise InvalidOptionError(f"count must be at least 1, got {count!r}; or use assert_not_enqueued")
    app = app or _app_of(job)
    wanted = _Wanted(app, job, args, kwargs, queue)
    everything = enqueued(app)
    fitting = [found for found in everything if wanted.fits(found)]
    if not fitting or (count is not None and len(fitting) != count):
        number = "" if count is None else f" {count} time{'s' if count > 1 else ''}, and was {len(fitting)}"
        raise AssertionError(f"{wanted} should have been enqueued{number}; {_listed(everything)}")
    return fitting[0]


def assert_not_enqueued(
    job: Expected, /, *args: Any, queue: str | None = None, app: Windlass | None = None, **kwargs: Any
) -> None:
    """Fail if a job was enqueued, with these arguments if any are given: the opposite of `assert_enqueued`."""
    app = app or _app_of(job)
    wanted = _Wanted(app, job, args, kwargs, queue)
    fitting = [found for found in enqueued(app) if wanted.fits(found)]
    if fitting:
        raise AssertionError(f"{wanted} should not have been enqueued; {_listed(fitting)}")


class _Wanted:
    """What a test expects."""

    def __init__(
        self, app: Windlass, job: Expected, args: tuple[Any, ...], kwargs: Mapping[str, Any], queue: str | None
    ) -> None:
        self._target = _target(app, job)
        self._names = app.registry.names_of(self._target)
        self._queue = queue
        self._any = not (args or kwargs or isinstance(job, Call))
        self._args, self._kwargs = (job.args, job.kwargs) if isinstance(job, Call) else (args, kwargs)
        resolution = app.registry.resolve(self._target)
        self._spec = resolution.spec if isinstance(resolution, Known) else None
        if self._spec is not None and not self._any:
            try:
                self._spec.bind_check(self._args, self._kwargs)
            except TypeError as error:
                raise TypeError(f"{error}; pass unittest.mock.ANY for what may be anything") from None

    def fits(self, job: Job) -> bool:
        if job.target not in self._names or (self._queue is not None and job.queue != self._queue):
            return False
        return self._any or _received(self._spec, self._args, self._kwargs) == _received(
            self._spec, job.args, job.kwargs
        )

    def __str__(self) -> str:
        call = self._target if self._any else _call_text(self._target, self._args, self._kwargs)
        return call if self._queue is None else f"{call} in queue {self._queue!r}"


def _received(spec: CallSpec | None, args: Iterable[Any], kwargs: Mapping[str, Any]) -> object:
    """Return arguments by name, with defaults, as the function gets them; as given if its signature is not known."""
    if spec is None:
        return tuple(args), dict(kwargs)
    try:
        bound = spec.signature.bind(*args, **kwargs)
    except TypeError:  # stored under another signature
        return tuple(args), dict(kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _target(app: Windlass, job: Expected) -> str:
    if isinstance(job, str):
        return job
    target = getattr(job, "target", None)  # a call, a job, or a method that is one
    return target if isinstance(target, str) else app.registry.resolver.describe(job)  # type: ignore[arg-type]


def _app_of(job: Expected | None) -> Windlass:
    """Return the application a job belongs to, else the one under test."""
    submitter = getattr(job, "submitter", None)
    app = submitter.registry.app if isinstance(submitter, Submitter) else None
    return app if isinstance(app, Windlass) else app_under_test()


def _listed(jobs: list[Job]) -> str:
    if not jobs:
        return "nothing was enqueued"
    lines = [f"  {_call_text(job.target, job.args, job.kwargs)}, queue {job.queue!r}, {job.status}" for job in jobs]
    if len(lines) > MAX_SHOWN:
        lines = [*lines[:MAX_SHOWN], f"  and {len(lines) - MAX_SHOWN} more"]
    return "enqueued:\n" + "\n".join(lines)


def _call_text(target: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    given = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"{target}({', '.join(given)})"
