"""The part of a context that only steps have which wait for answers from outside."""

from __future__ import annotations

from windlass.errors import ConfigurationError

_OUTSIDE = "ctx.{} is for the bodies of steps that wait outside; declare the step with @pipeline.await_external"


class InteractionContext:
    """What names the answer that a step waits for, and lets others give it."""

    __slots__ = ()

    @property
    def interaction_id(self) -> str:
        """Names the answer that a step of a pipeline waits for which was declared with `await_external`."""
        raise ConfigurationError(_OUTSIDE.format("interaction_id"))

    @property
    def token(self) -> str:
        """Allows its holder to answer such a step, until its deadline. It belongs in requests, not in logs."""
        raise ConfigurationError(_OUTSIDE.format("token"))
