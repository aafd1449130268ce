"""The resilience strategy as an attempt uses it: whatever a user's strategy does, the job has a defined outcome."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from windlass import loggers
from windlass.engine.attempt import Deferred, Ending, Raised
from windlass.errors import CircuitOpenError
from windlass.spi import ResilienceStrategy

logger = loggers.logger("windlass.resilience")

WHEN_BROKEN = 30.0
"""Seconds until the next check when the strategy raised or returned no usable delay."""
SOONEST, LATEST = 0.1, 86_400.0
"""Bounds of a delay: without them, jobs could be claimed again without a pause, or wait forever."""


class Resilience:
    """Calls the strategy. If it fails itself, its jobs wait without spending attempts."""

    def __init__(self, strategy: ResilienceStrategy, *, is_users: bool) -> None:
        self._strategy = strategy
        self.is_users = is_users
        """Whether it is a user's strategy: the store's circuits then do not count calls."""

    def delay(self, service: str) -> float | None:
        """Return the seconds until the service should be tried; None if it may be called now."""
        try:
            return None if self._strategy.available(service) else self._retry_delay(service)
        except Exception as error:  # noqa: BLE001 - users' code
            logger.error("the resilience strategy raised %s in available(%r)", type(error).__name__, service)
            return WHEN_BROKEN

    async def call(
        self,
        service: str,
        body: Callable[[], Coroutine[Any, Any, Ending]],
        on_other_error: Callable[[BaseException], Ending],
    ) -> Ending:
        """Have the strategy make the call. It sees the body's error, and may refuse with `CircuitOpenError`.

        `on_other_error` handles an error that is not the body's: the attempt may be timed out, drained or canceled
        while the strategy itself waits.
        """
        ended: list[Ending] = []

        async def once() -> Ending:
            ended.append(await body())
            if isinstance(ended[-1], Raised):
                raise ended[-1].error
            return ended[-1]

        try:
            await self._strategy.execute(service, once)
        except CircuitOpenError as error:
            if not ended:
                return Deferred(self._retry_delay(service))
            return ended[-1] if isinstance(ended[-1], Raised) else on_other_error(error)
        except BaseException as error:  # noqa: BLE001 - the body's or the strategy's error: the job failed either way
            return ended[-1] if ended and isinstance(ended[-1], Raised) else on_other_error(error)
        return ended[-1] if ended else Raised(RuntimeError(f"the resilience strategy never made the call to {service}"))

    def _retry_delay(self, service: str) -> float:
        try:
            return min(max(self._strategy.retry_delay(service).total_seconds(), SOONEST), LATEST)
        except Exception as error:  # noqa: BLE001 - users' code
            logger.error("the resilience strategy raised %s in retry_delay(%r)", type(error).__name__, service)
            return WHEN_BROKEN
