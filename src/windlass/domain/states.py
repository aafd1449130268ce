"""The state machine of a job: every legal move, once.

```
PENDING → RUNNING → SUCCEEDED | FAILED (dead letter) | PENDING (retry, release, recovery)
PENDING, FAILED → PAUSED → the state it was paused from
PENDING, RUNNING, PAUSED, WAITING → CANCELED
WAITING → PENDING (signal, or its timeout) ; RUNNING → WAITING (timed out, with retries left)
FAILED → PENDING, or WAITING if its signal never came (retry by hand)
CANCELED → PENDING or WAITING (a follower, with the retry of what canceled it)
PENDING, PAUSED → SUCCEEDED | FAILED (a batch, with its last child)
```
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class JobStatus(StrEnum):
    """The state of a job; the value is what the store, the command line and JSON show."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


LIVE: Final = frozenset({JobStatus.PENDING, JobStatus.RUNNING, JobStatus.WAITING, JobStatus.PAUSED})
"""States that hold a business key (a job PAUSED from FAILED excepted)."""

TERMINAL: Final = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED})
"""States in which a job has ended; only FAILED can be left, manually, and CANCELED by a retry of the job's parent."""


class Move(StrEnum):
    """An event that moves a job from one state to another."""

    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    REQUEUE = "requeue"  # due again after a delay: a failure that is retried, a snooze, an open circuit
    RELEASE = "release"  # due as before: a drain, a lost process, a target that only other nodes know
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"  # by hand, from the dead letters
    SIGNAL = "signal"
    EXPIRE = "expire"  # a signal did not come in time: the attempt that follows fails without entering the body
    PARK = "park"  # waits again for a signal that did not come: by a retry of its timeout, or by hand
    GIVE_UP = "give_up"  # no node has known the target for too long
    CONCLUDE = "conclude"  # a batch: the last of its children has ended
    REVIVE = "revive"  # a follower that was canceled by a failure which is retried by hand


_S = JobStatus

MOVES: Final[Mapping[Move, frozenset[tuple[JobStatus, JobStatus]]]] = MappingProxyType(
    {
        Move.CLAIM: frozenset({(_S.PENDING, _S.RUNNING)}),
        Move.SUCCEED: frozenset({(_S.RUNNING, _S.SUCCEEDED)}),
        Move.FAIL: frozenset({(_S.RUNNING, _S.FAILED)}),
        Move.REQUEUE: frozenset({(_S.RUNNING, _S.PENDING)}),
        Move.RELEASE: frozenset({(_S.RUNNING, _S.PENDING)}),
        Move.CANCEL: frozenset((state, _S.CANCELED) for state in LIVE),
        Move.PAUSE: frozenset({(_S.PENDING, _S.PAUSED), (_S.FAILED, _S.PAUSED)}),
        Move.RESUME: frozenset({(_S.PAUSED, _S.PENDING), (_S.PAUSED, _S.FAILED)}),
        Move.RETRY: frozenset({(_S.FAILED, _S.PENDING)}),
        Move.SIGNAL: frozenset({(_S.WAITING, _S.PENDING)}),
        Move.EXPIRE: frozenset({(_S.WAITING, _S.PENDING)}),
        Move.PARK: frozenset({(_S.RUNNING, _S.WAITING), (_S.FAILED, _S.WAITING)}),
        Move.GIVE_UP: frozenset({(_S.PENDING, _S.FAILED)}),
        Move.CONCLUDE: frozenset((live, end) for live in (_S.PENDING, _S.PAUSED) for end in (_S.SUCCEEDED, _S.FAILED)),
        Move.REVIVE: frozenset({(_S.CANCELED, _S.PENDING), (_S.CANCELED, _S.WAITING)}),
    }
)
"""For each move, the pairs of (state before, state after)."""

ENTERED: Final[Mapping[Move, JobStatus]] = MappingProxyType(
    {
        move: next(target for _, target in pairs)
        for move, pairs in MOVES.items()
        if len({target for _, target in pairs}) == 1
    }
)
"""The state after a move, for moves that lead to only one state."""


def sources_of(move: Move) -> frozenset[JobStatus]:
    """Return the states that `move` may start from, e.g. for the guard of its compare-and-set."""
    return frozenset(source for source, _ in MOVES[move])
