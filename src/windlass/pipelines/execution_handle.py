"""A handle on an execution: its id, and the verbs that wait for it and move it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from windlass.domain.execution import ExecutionStatus
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.handle import Timeout


class ExecutionVerbs(Protocol):
    """The verbs on an execution by its id, which all handles of an application share."""

    def status(self, execution_id: str, tenant: str) -> Verb[ExecutionStatus]:
        """Read the current status."""
        ...

    def result(self, execution_id: str, tenant: str, timeout: Timeout) -> Verb[Any]:
        """Wait for the end and return the result."""
        ...

    def join(self, execution_id: str, tenant: str, timeout: Timeout) -> Verb[ExecutionStatus]:
        """Wait for the end."""
        ...

    def items(self, execution_id: str, tenant: str, after: str) -> Verb[tuple[list[Any], str | None]]:
        """Read the next of its last items; the text is where the following ones begin."""
        ...

    def cancel(self, execution_id: str, tenant: str) -> Verb[bool]:
        """See `ExecutionHandle.cancel`."""
        ...

    def pause(self, execution_id: str, tenant: str) -> Verb[bool]:
        """See `ExecutionHandle.pause`."""
        ...

    def resume(self, execution_id: str, tenant: str) -> Verb[bool]:
        """See `ExecutionHandle.resume`."""
        ...


class ExecutionHandle:
    """The result of submitting an execution: its id, and methods to wait for it and move it.

    ```python
    run = orders.submit({"id": 7}, key="order-7")
    run.status()             # ExecutionStatus.QUEUED
    run.result(timeout=30)   # the invoice, or raises JobFailedError, JobCanceledError …
    ```
    """

    def __init__(self, execution_id: str, tenant: str, verbs: ExecutionVerbs, *, duplicate: bool = False) -> None:
        self._key = execution_id
        self._verbs = verbs
        self.tenant = tenant
        """The tenant that it belongs to."""
        self.duplicate = duplicate
        """Whether an earlier execution with the same key is returned; this submission then stored nothing."""

    @property
    def id(self) -> UUID:
        """The id of the execution, which its job has too."""
        return UUID(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._key!r}{', duplicate=True' if self.duplicate else ''})"

    def status(self) -> ExecutionStatus:
        """Return the current status."""
        return drive(self._verbs.status(self._key, self.tenant))

    async def astatus(self) -> ExecutionStatus:
        """Async twin of `status`."""
        return await adrive(self._verbs.status(self._key, self.tenant))

    def result(self, timeout: float | timedelta | None = None) -> Any:
        """Wait for the end and return the result; errors and a `TimeoutError` say which status it has."""
        return drive(self._verbs.result(self._key, self.tenant, timeout))

    async def aresult(self, timeout: float | timedelta | None = None) -> Any:
        """Async twin of `result`."""
        return await adrive(self._verbs.result(self._key, self.tenant, timeout))

    def join(self, timeout: float | timedelta | None = None) -> ExecutionStatus:
        """Wait for the end and return the status; raise `TimeoutError` after `timeout` seconds."""
        return drive(self._verbs.join(self._key, self.tenant, timeout))

    async def ajoin(self, timeout: float | timedelta | None = None) -> ExecutionStatus:
        """Async twin of `join`."""
        return await adrive(self._verbs.join(self._key, self.tenant, timeout))

    def items(self) -> Iterator[Any]:
        """Iterate over the last items of an execution that has ended in items, in order, page by page."""
        after: str | None = ""
        while after is not None:
            page, after = drive(self._verbs.items(self._key, self.tenant, after))
            yield from page

    async def aitems(self) -> AsyncIterator[Any]:
        """Async twin of `items`."""
        after: str | None = ""
        while after is not None:
            page, after = await adrive(self._verbs.items(self._key, self.tenant, after))
            for item in page:
                yield item

    def cancel(self) -> bool:
        """Cancel it with all its items; return False if it has ended."""
        return drive(self._verbs.cancel(self._key, self.tenant))

    async def acancel(self) -> bool:
        """Async twin of `cancel`."""
        return await adrive(self._verbs.cancel(self._key, self.tenant))

    def pause(self) -> bool:
        """Pause it: what runs stops at its next boundary. Return False if it has ended, or is paused."""
        return drive(self._verbs.pause(self._key, self.tenant))

    async def apause(self) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._verbs.pause(self._key, self.tenant))

    def resume(self) -> bool:
        """Resume it; return False if it is not paused."""
        return drive(self._verbs.resume(self._key, self.tenant))

    async def aresume(self) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._verbs.resume(self._key, self.tenant))
