"""How the body of a feature's job ends its attempt by its own decision."""

from __future__ import annotations

from windlass.domain.transition import Failure


class EndAttempt(BaseException):
    """Raised by the body of a feature's job to decide itself how its attempt ends.

    A BaseException, so that `except Exception` lets it pass. `cargo` reaches the follow-ups of the transaction that
    writes the end, as `Ended.cargo`.
    """

    def __init__(
        self,
        outcome: str,
        *,
        delay_us: int = 0,
        lane: str | None = None,
        result: str | None = None,
        failure: Failure | None = None,
        reason: str | None = None,
        called: BaseException | bool | None = None,
        cargo: object = None,
    ) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        """`succeeded`, `failed` (for good), or another word for an attempt whose job goes on later."""
        self.delay_us = delay_us
        """Of a job that goes on: until it is due; `domain.transition.NEVER_DUE`: until it is released."""
        self.lane = lane
        """Of a job that goes on: its lane from now on; an empty text for none, None for the same."""
        self.result = result
        self.failure = failure
        self.reason = reason
        self.called = called
        """How the call to the service of its circuit ended: an error, True for success, None if there was none."""
        self.cargo = cargo
