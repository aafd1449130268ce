"""Calls of steps: on the loop or on a thread, inside the application's middleware, and with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windlass.context import JobContext, current_context
from windlass.errors import JobTimeoutError
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.pipeline_parts import PipelineParts
from windlass.pipelines.step_limits import StepLimits
from windlass.runtime.failpoints import reached
from windlass.runtime.middleware import around
from windlass.runtime.threads import BodyExit, BodyStillRuns
from windlass.spi import ExecutorProvider, Invocation
from windlass.submission.context_parameters import with_context

T = TypeVar("T")


class StepCalls:
    """Calls steps for the claims of one node."""

    def __init__(self, executors: ExecutorProvider, parts: PipelineParts) -> None:
        self._threads = executors.executor("thread")
        self._parts = parts
        self._limits = StepLimits(asyncio.get_running_loop())

    def call(self, step: PipelineStep, context: JobContext, target: str, *given: Any) -> Coroutine[Any, Any, Any]:
        """Call the function of a step with its input, and return what it returns or raise what it raises."""
        function: Callable[..., Any] = step.function
        if self._parts.middleware:
            function = around(function, self._parts.middleware, context, is_coroutine=step.is_coroutine)
        return self.run(step, context, target, function, *(given if step.has_input else ()))

    def run(
        self, step: PipelineStep, context: JobContext, target: str, function: Callable[..., Any], *given: Any
    ) -> Coroutine[Any, Any, Any]:
        """Run a function as the body of a step: on the loop if the step is async, else on a thread."""
        kwargs: dict[str, Any] = {}
        if step.contexts:
            given, kwargs = with_context(step.contexts, context, given, kwargs)
        return self.run_plain(step, context, target, function, given, kwargs)

    async def run_plain(
        self,
        step: PipelineStep,
        context: JobContext,
        target: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Do the same with arguments that are complete."""
        limit = step.options.timeout if step.options.timeout is not None else self._parts.default_timeout
        outer = current_context.set(context)
        timer = self._limits.limit(limit)
        try:
            with timer:
                if step.is_async:
                    return await function(*args, **kwargs)
                return await self._on_thread(Invocation(target, function, args, kwargs, limit))
        except TimeoutError as error:
            if not timer.expired:
                raise
            text = f"step {step.name!r} ran longer than its timeout of {limit:g} s"
            raise JobTimeoutError(text) from error.__cause__
        except BodyExit as error:
            raise error.error from None
        finally:
            context.over = True
            current_context.reset(outer)
            reached("step.after_body")

    async def run_beside(self, what: str, target: str, function: Callable[[], T]) -> T:
        """Run users' code that is no step on a thread, with the time limit of a step that has none of its own."""
        limit = self._parts.default_timeout
        timer = self._limits.limit(limit)
        try:
            with timer:
                found: T = await self._on_thread(Invocation(target, function, (), {}, limit))
                return found
        except TimeoutError:
            if not timer.expired:
                raise
            raise JobTimeoutError(f"{what} ran longer than {limit:g} s") from None
        except BodyExit as error:
            raise error.error from None

    async def _on_thread(self, invocation: Invocation) -> Any:
        try:
            return await self._threads.run(invocation)
        except BodyStillRuns:  # of a class of its own, which the limit would not take for its cancellation
            raise asyncio.CancelledError from None
