"""What the claims of one node share: batched reads of executions, and batched writes at the boundaries of steps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

from windlass import loggers
from windlass.context import JobContext
from windlass.domain.execution import ExecutionState
from windlass.errors import ConfigurationError, StaleClaimError, StoreUnavailableError
from windlass.feature import BodyTools
from windlass.pipelines.pipeline_parts import PipelineParts
from windlass.pipelines.step_calls import StepCalls
from windlass.runtime.batcher import Batcher
from windlass.runtime.failpoints import reached
from windlass.stores.database import PlanFunction, StoreDataError
from windlass.stores.plans import executions, items
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer
from windlass.stores.plans.items import StoredPart

logger = loggers.logger("windlass.pipelines")

P = ParamSpec("P")
T = TypeVar("T")

MOST_IN_A_COMMIT: Final = 500
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

_NAME: Final = "pipelines"


class NodeRuntime:
    """Reads and writes executions for the claims of one node."""

    def __init__(self, tools: BodyTools, parts: PipelineParts) -> None:
        self.tools = tools
        self.parts = parts
        self.database = tools.database
        self._loop = asyncio.get_running_loop()
        self.calls = StepCalls(tools.executors, parts)
        self.stale = 0
        """Writes that were refused because their claim was lost."""
        self._executions = Batcher[str, ExecutionState | None](self._load, MOST_IN_A_COMMIT)
        self._parts = Batcher[str, StoredPart | None](self._load_parts, MOST_IN_A_COMMIT)
        self._checkpoints = Batcher[Checkpoint, CheckpointAnswer | Exception](self._write, MOST_IN_A_COMMIT)

    @classmethod
    def of(cls, context: JobContext, parts: PipelineParts) -> NodeRuntime:
        """Return the runtime of the node that runs a job."""
        tools = context.tools
        if not isinstance(tools, BodyTools):
            raise ConfigurationError("executions of pipelines run on a worker; this body was called without one")
        runtime: NodeRuntime | None = tools.shared.get(_NAME)
        if runtime is None:
            runtime = tools.shared[_NAME] = cls(tools, parts)
        return runtime

    async def execution(self, execution_id: str) -> ExecutionState | None:
        """Return an execution with its present value; None if there is none."""
        return await self._executions.call(execution_id)

    async def part(self, job_id: str) -> StoredPart | None:
        """Return the part of a job; None if it has none any more."""
        return await self._parts.call(job_id)

    async def read(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan that writes nothing; again while the store is away: an outage is no failure of a step."""
        return await self.patiently(lambda: self.database.aread(plan, *args, **kwargs))

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the store something that may be repeated; again while it is away."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await ask()
            except StoreUnavailableError as error:
                if pause == FIRST_PAUSE:
                    logger.warning("the store does not answer; a step waits for what it reads: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def read_blocking(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as `read` on a thread."""
        pause = FIRST_PAUSE
        while True:
            try:
                return self.database.read(plan, *args, **kwargs)
            except StoreUnavailableError as error:
                if pause == FIRST_PAUSE:
                    logger.warning("the store does not answer; a step waits for what it reads: %s", error)
                threading.Event().wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def checkpoint(self, write: Checkpoint) -> CheckpointAnswer:
        """Write what a claim has finished; return when it is committed. Raises `StaleClaimError` if it was lost."""
        answer = await self._checkpoints.call(write)
        if isinstance(answer, Exception):
            raise answer
        return self.accepted(write, answer)

    def checkpoint_blocking(self, write: Checkpoint) -> CheckpointAnswer:
        """Do the same on a thread, in a commit of its own."""
        pause = FIRST_PAUSE
        while True:
            try:
                (answer,) = self.database.run(executions.checkpoint, [write])
            except StoreUnavailableError as error:
                logger.warning("the store does not answer; a chunk of items waits to be written: %s", error)
                threading.Event().wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                reached("checkpoint.after_commit")
                with suppress(RuntimeError):  # the loop was closed; nodes find new work without a wakeup, too
                    self._loop.call_soon_threadsafe(self._announce, [write], [answer])
                return self.accepted(write, answer)

    def accepted(self, write: Checkpoint, answer: CheckpointAnswer) -> CheckpointAnswer:
        """Return the answer, or raise if the claim was lost."""
        if answer.held:
            return answer
        raise StaleClaimError(f"execution {write.execution_id}: the claim (fence {write.fence}) was lost")

    def _announce(self, batch: Sequence[Checkpoint], answers: Sequence[CheckpointAnswer | Exception]) -> None:
        """Wake nodes for new work, and count refused writes: their claims may have ended, and expect no answer."""
        work: set[tuple[str, int]] = set()
        for write, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                continue
            work |= answer.new_work
            for call in answer.calls:
                call()
            if not answer.held:
                self.stale += 1
                logger.warning(
                    "execution %s: a step came too late and was refused; another claim, a recovery or a cancel was "
                    "first",
                    write.execution_id,
                )
        if work:
            self.tools.new_work(work)

    async def _load(self, ids: Sequence[str]) -> list[ExecutionState | None]:
        found = await self.read(executions.load, sorted(set(ids)))
        return [found.get(one) for one in ids]

    async def _load_parts(self, ids: Sequence[str]) -> list[StoredPart | None]:
        found = await self.read(items.parts_of_jobs, sorted(set(ids)))
        return [found.get(one) for one in ids]

    async def _write(self, batch: Sequence[Checkpoint]) -> list[CheckpointAnswer | Exception]:
        """Write a batch; again while the store is away: a commit whose answer was lost is not repeated.

        A write whose values the store refuses is found by writing one after another.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                answers: list[CheckpointAnswer | Exception] = list(
                    await self.database.arun(executions.checkpoint, batch)
                )
            except StoreUnavailableError as error:
                logger.warning("the store does not answer; %d steps wait to be written: %s", len(batch), error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except StoreDataError as error:
                if len(batch) == 1:
                    return [error]
                return [answer for one in batch for answer in await self._write([one])]
            else:
                reached("checkpoint.after_commit")
                self._announce(batch, answers)
                return answers
