"""Signals: what releases a waiting job from outside, and what the job waits for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from windlass.domain.clock import MICROSECONDS
from windlass.domain.durations import seconds
from windlass.domain.keys import check_key
from windlass.errors import InvalidOptionError

SignalOutcome = Literal["signaled", "approved", "rejected"]

NO_DEADLINE: Final = 2**62
"""The due time of a job that waits without a timeout. Users see None."""
WAIT_IN_TEXT: Final = '"wait":{'
"""In the stored options of every job that awaits a signal; rarely in others."""
MAX_REASON: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The signal that released a job, as its body sees it: `ctx.signal`.

    ```python
    @app.job
    def ship(order_id: int) -> str:
        signal = JobContext.current().signal
        if signal is not None and signal.outcome == "rejected":
            return f"order {order_id} was rejected: {signal.reason}"
        return f"order {order_id} is on its way"
    ```
    """

    key: str
    """The key that the job waited for."""
    outcome: SignalOutcome
    """`approved` or `rejected`; `signaled` if only a payload was sent."""
    payload: Any = None
    reason: str | None = None
    """Why it was rejected."""
    by: str | None = None
    """The principal that sent it (`app.acting_as`); without one, user and host of the process that did."""


class SentSignal(NamedTuple):
    """A signal to be sent; made by `approved` and `rejected`."""

    outcome: SignalOutcome
    payload: Any = None
    reason: str | None = None


def approved(payload: Any = None) -> SentSignal:
    """Return an approval, for `app.signal`.

    ```python
    app.signal("order:7:approved", approved({"by": "ops"}))
    ```
    """
    return SentSignal("approved", payload)


def rejected(reason: str, payload: Any = None) -> SentSignal:
    """Return a rejection, for `app.signal`. It releases the job as well: its body decides what follows.

    ```python
    app.signal("order:7:approved", rejected("out of stock"))
    ```
    """
    given: object = reason  # callers may not have respected its type
    if not isinstance(given, str) or not given.strip() or len(given) > MAX_REASON:
        raise InvalidOptionError(
            f"the reason of a rejection must be a text of 1 to {MAX_REASON:,} characters, got "
            f"{f'{len(given):,} characters' if isinstance(given, str) and given.strip() else repr(given)}; "
            "e.g. rejected('out of stock')"
        )
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise InvalidOptionError(
            f"the reason of a rejection must be a text that can be stored, got {reason!r} ({error.reason}); leave out "
            "half characters"
        ) from None
    return SentSignal("rejected", payload, reason)


def sent(value: Any) -> SentSignal:
    """Return what is given to `app.signal` as a signal: a bare payload becomes a plain signal."""
    return value if isinstance(value, SentSignal) else SentSignal("signaled", value)


class SignalWait(NamedTuple):
    """What a job waits for before it runs."""

    key: str
    timeout_us: int | None = None
    """How long it waits, from its release on; None: without a limit."""


def signal_wait(key: object, timeout: float | timedelta | None) -> SignalWait:
    """Check the arguments of `await_signal`."""
    name = check_key(key, "the key of a signal")
    if reads_as_id(name):
        raise InvalidOptionError(
            f"the key of a signal must not read as a UUID, got {name!r}: app.signal takes keys and job ids, and could "
            f"not tell them apart; write f'order:{name}', or signal the job by its id"
        )
    if timeout is None:
        return SignalWait(name)
    limit = seconds(timeout, "timeout")
    if not limit:
        raise InvalidOptionError(
            f"timeout must be more than 0 s, got {timeout!r}: the job would have failed before anyone could signal it; "
            "leave it out to wait for ever"
        )
    return SignalWait(name, max(1, int(limit * MICROSECONDS)))


def deadline_or_none(due: int | None) -> int | None:
    """Return a due time as users see it: None if it stands for "for ever"."""
    return None if isinstance(due, int) and due >= NO_DEADLINE else due


def reads_as_id(key: object) -> bool:
    """Return whether a key is a UUID, or a text that reads as one, in any of its forms."""
    if not isinstance(key, str):
        return isinstance(key, UUID)
    try:
        UUID(key.strip())
    except ValueError:
        return False
    return True
