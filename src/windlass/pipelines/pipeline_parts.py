"""The parts of an application that executions of its pipelines use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windlass.pipelines.relay_bells import RelayBells
from windlass.pipelines.token_keys import TokenKeys
from windlass.settings import PipelinesSettings
from windlass.spi import JobMiddleware, RetryPolicy, Serializer


class PipelineParts(NamedTuple):
    """What does not depend on the store."""

    serializer: Serializer
    retry_policy: RetryPolicy
    middleware: Sequence[JobMiddleware]
    settings: PipelinesSettings
    default_timeout: float | None
    """Seconds that a step may take which has no timeout of its own."""
    tokens: TokenKeys
    """Keys of the tokens of steps that wait outside."""
    bells: RelayBells
