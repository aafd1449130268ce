"""The running step of an execution, as its body sees it: a `JobContext` that knows the step and the item."""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

from windlass.context import JobContext
from windlass.domain.item_paths import readable
from windlass.domain.job import Claim
from windlass.domain.transition_keys import transition_key
from windlass.errors import InvalidOptionError
from windlass.pipelines.definition import PipelineStep


class AwaitedAnswer(Protocol):
    """An answer that a step waits for."""

    @property
    def interaction_id(self) -> str:
        """Names it."""
        ...

    @property
    def token(self) -> str:
        """Allows its holder to answer."""
        ...


class StepContext(JobContext):
    """The context of one call of a step. `JobContext.current()` returns it inside of a step.

    ```python
    @orders.step
    def price(line: Line, ctx: JobContext) -> Priced:
        return Priced(line, quote(line, idempotency_key=ctx.effect_key))
    ```
    """

    __slots__ = ("_attempt", "_claimed", "_path", "_step", "interaction", "rejected")

    def __init__(self, claimed: JobContext, step: PipelineStep, claim: Claim, attempt: int, path: str) -> None:
        super().__init__(claim, claimed._payload, claimed.node, tools=claimed.tools)
        self._claimed = claimed
        self._step = step
        self._attempt = attempt
        self._path = path
        self.rejected: list[tuple[Any, BaseException | str]] = []
        """What the body has rejected, with the reasons."""
        self.interaction: AwaitedAnswer | None = None
        """The wait of a step that waits for an external answer."""

    @property
    def step(self) -> str:
        """Name of the step."""
        return self._step.name

    @property
    def execution_id(self) -> UUID:
        """The id of the execution."""
        return self.job_id

    @property
    def attempt(self) -> int:
        """Number of this try of the step; the first is 1."""
        return self._attempt

    @property
    def item(self) -> str | None:
        """Position of the item in its expansion, e.g. `3.17`; None before the first one."""
        return readable(self._path) or None

    @property
    def effect_key(self) -> str:
        """The same for every attempt of this step with this item: for services that must not act twice."""
        return ":".join(filter(None, (self._claim.job_id, str(self._step.index), self.item)))

    @property
    def transition_key(self) -> str:
        """Different for every attempt of this step with this item."""
        return transition_key(self._claim.job_id, self._step.index, self._attempt, self._path)

    @property
    def interaction_id(self) -> str:
        """Names the answer that a step declared with `await_external` waits for."""
        return self.interaction.interaction_id if self.interaction else super().interaction_id

    @property
    def token(self) -> str:
        """Allows its holder to answer a step declared with `await_external`, until its deadline. Not for logs."""
        return self.interaction.token if self.interaction else super().token

    def reject(self, item: Any, error: BaseException | str) -> None:
        """Record an item of a stream as rejected: it goes to the reject sink, and the step goes on.

        For steps that take or give many items: expand, transform and reduce. In others, raise `RejectItem`.
        """
        if not (self._step.kind.takes_stream or self._step.kind.gives_stream):
            raise InvalidOptionError(
                f"ctx.reject is for the items of expand, transform and reduce; step {self.step!r} has one item, which "
                "`raise RejectItem('why')` rejects"
            )
        self.rejected.append((item, error))

    @property
    def canceled(self) -> bool:
        """Whether this attempt should end: its execution was canceled, or its node drains."""
        return self._claimed.canceled

    @property
    def cancelled(self) -> bool:
        """Another spelling of `canceled`."""
        return self._claimed.canceled

    def check(self) -> None:
        """Raise `StopJob` if the attempt should end, or `StaleClaimError` if the claim was lost."""
        self._claimed.check()

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report the progress of the claim that runs this step; shown in `app.get(id).progress`."""
        self._claimed.progress(done, total, message)
