"""The job whose body started a thread, or submitted work to it: for log records made there.

A new thread does not inherit the context variables of the one that starts it. While a worker runs in this process,
`Thread.start` and `ThreadPoolExecutor.submit` remember the job they are called in.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from windlass.context import JobContext, current_context

ATTRIBUTE = "_windlass_job"
OWN_THREADS = "windlass"
"""Prefix of the names of Windlass's threads: a body may happen to start one, but it serves other jobs too."""

_submitted_by: ContextVar[JobContext | None] = ContextVar("windlass_submitted_by", default=None)


def starting_job() -> JobContext | None:
    """Return the job whose body started this thread or work, until that attempt has ended."""
    context = _submitted_by.get() or getattr(threading.current_thread(), ATTRIBUTE, None)
    return None if context is None or context.over else context


class _InSubmit(threading.local):
    """Whether this thread is inside `submit`: a pool's thread serves several jobs, so each call is marked instead."""

    now = False


_in_submit = _InSubmit()


class ThreadMarks:
    """Replacements of `Thread.start` and `ThreadPoolExecutor.submit`, in place until `remove`."""

    def __init__(self) -> None:
        self.active = True
        self._start, self._submit = threading.Thread.start, ThreadPoolExecutor.submit
        self._our_start, self._our_submit = self._make_start(), self._make_submit()
        threading.Thread.start = self._our_start  # type: ignore[method-assign, assignment]
        ThreadPoolExecutor.submit = self._our_submit  # type: ignore[method-assign]

    def remove(self) -> None:
        """Restore the originals. If another library has wrapped ours, ours stay and do nothing."""
        self.active = False
        if threading.Thread.start is self._our_start:
            threading.Thread.start = self._start  # type: ignore[method-assign]
        if ThreadPoolExecutor.submit is self._our_submit:
            ThreadPoolExecutor.submit = self._submit  # type: ignore[method-assign]

    def _job(self) -> JobContext | None:
        return (current_context.get() or starting_job()) if self.active else None

    def _make_start(self) -> Callable[[threading.Thread], None]:
        original = self._start

        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            context = self._job()
            if context is not None and not _in_submit.now and not thread.name.startswith(OWN_THREADS):
                setattr(thread, ATTRIBUTE, context)
            original(thread)

        return start

    def _make_submit(self) -> Callable[..., Future[Any]]:
        original: Callable[..., Future[Any]] = self._submit

        @functools.wraps(original)
        def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            context = self._job()
            if context is None:
                return original(pool, function, *args, **kwargs)
            _in_submit.now = True
            try:
                return original(pool, _called_for, context, function, args, kwargs)
            finally:
                _in_submit.now = False

        return submit


def _called_for(context: JobContext, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    token = _submitted_by.set(context)
    try:
        return function(*args, **kwargs)
    finally:
        _submitted_by.reset(token)
