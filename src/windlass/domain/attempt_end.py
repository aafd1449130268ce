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
        """`succeeded`, `failed` (finally), or another text for an attempt whose job continues later."""
        self.delay_us = delay_us
        """For a job that continues: until it is due; `domain.transition.NEVER_DUE`: until it is released."""
        self.lane = lane
        """For a job that continues: its lane from now on; an empty text for none, None for the same."""
        self.result = result
        self.failure = failure
        self.reason = reason
        self.called = called
        """How the call to the service of its circuit ended: an error, True for success, None if there was none."""
        self.cargo = cargo
