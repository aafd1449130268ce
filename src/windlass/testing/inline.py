"""Inline mode: a job has run when `enqueue` returns."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from windlass.app import Windlass
from windlass.testing.drain import adrain, drain, on_a_loop
from windlass.testing.isolation import is_under_test, isolated


@contextmanager
def inline(app: Windlass, *, propagate: bool = False) -> Iterator[Windlass]:
    """Make every `enqueue` run the due jobs before it returns, in the caller's thread, inside the block.

    ```python
    with inline(app):
        assert charge.enqueue(42).result() == "charged 42"
    ```

    Enters `isolated(app)` unless the test has. Jobs go through the same store and engine as ever: they are retried,
    leave their history, and `result()` raises `JobFailedError`. With `propagate`, what a body raises comes out of
    `enqueue` itself. Jobs that are not due wait for `advance`, which runs them. Jobs that were enqueued with
    `connection=` or inside `use_connection` are there once you have committed, which Windlass does not notice: they run
    when the test asks for them (`result()`, `join()`), or at the next `enqueue`, `advance` or `drain`.
    """
    with nullcontext(app) if is_under_test(app) else isolated(app):
        before = app.exchange(app.parts._replace(inline=_Drains(app, propagate=propagate)))
        try:
            yield app
        finally:
            app.exchange(before)


class _Drains:
    def __init__(self, app: Windlass, *, propagate: bool) -> None:
        self._app = app
        self._propagate = propagate
        self.uncommitted = False

    def run(self) -> None:
        if not on_a_loop():
            drain(self._app, raise_errors=self._propagate)
            return
        # A loop cannot run inside a loop. Calling the blocking verb on a loop blocks it in production, too.
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1, thread_name_prefix="windlass-inline") as threads:
            threads.submit(context.run, drain, self._app, raise_errors=self._propagate).result()

    async def arun(self) -> None:
        await adrain(self._app, raise_errors=self._propagate)
