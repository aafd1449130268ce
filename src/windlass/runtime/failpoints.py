"""Failpoints: named points at which a process can be made to die, stop, raise or sleep, for crash tests.

`WINDLASS_FAILPOINTS="completer.before_commit=kill@3;submit.after_commit=stop"` is read once, when this module is
imported. Each part names a point and an action; with `@n` the action happens at the n-th pass only, else at every pass:

| action | what happens |
|---|---|
| `kill` | SIGKILL: the process dies without cleanup |
| `stop` | SIGSTOP: the whole process is suspended until SIGCONT |
| `exit` | the process ends at once with exit code 70 |
| `raise` | a `FailpointError` is raised at the point |
| `sleep:<seconds>` | the thread that passes (possibly the loop's) sleeps |

Without the variable a point costs one function call. While points are armed, plans of a single
statement run in a transaction too (`stores`): only then is there a moment between write and commit.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from windlass import loggers
from windlass.errors import ConfigurationError

VARIABLE: Final = "WINDLASS_FAILPOINTS"
EXIT_CODE: Final = 70
LONGEST_SLEEP: Final = 3_600.0

POINTS: Final[Mapping[str, str]] = {
    "submit.before_commit": "new jobs are written, nothing is committed",
    "submit.after_commit": "new jobs are stored and other processes notified; the caller has no answer yet",
    "claim.before_commit": "jobs are marked RUNNING for this node, nothing is committed",
    "claim.after_commit": "jobs are claimed; none of them has been given to a slot",
    "run.before_body": "an attempt is about to enter its body",
    "run.after_body": "a body has ended; only this process knows",
    "completer.before_write": "a flush of outcomes is about to be written",
    "completer.written": "outcomes are written, their follow-ups (callbacks) are not, nothing is committed",
    "completer.before_commit": "outcomes and their follow-ups are written, nothing is committed",
    "completer.after_commit": "outcomes are stored; no subscriber, handle or other process was notified",
    "retry.before_commit": "a retry is written (attempt, due time, history), nothing is committed",
    "retry.after_commit": "a retry is stored; the poller does not know its due time yet",
    "dead_letter.before_commit": "a final failure is written with its follow-ups, nothing is committed",
    "dead_letter.after_commit": "a final failure is stored; nothing was published",
    "recovery.marked": "nodes whose lease ran out are marked lost; their jobs are still RUNNING",
    "recovery.attempt_written": "a lost attempt is in the history, its job not yet PENDING, nothing is committed",
    "recovery.given_up": "a job whose crash budget is spent has its outcome, its live row is still there",
    "recovery.before_commit": "a batch of a lost node's jobs is requeued, nothing is committed",
    "recovery.after_commit": "a batch of a lost node's jobs is PENDING again; nothing was published",
    "archive.copied": "old jobs are in the archive and in the working tables as well, nothing is committed",
    "archive.after_commit": "a batch of old jobs is in the archive only; its node still holds the duty",
    "purge.before_commit": "a batch of dead letters is deleted with all its data, nothing is committed",
    "purge.after_commit": "a batch of dead letters is deleted; its node still holds the duty",
    "permits.deleted": "permits of bodies of lost nodes are deleted, not yet counted as free or committed",
    "expiry.after_commit": "expired jobs are canceled; nothing was published",
    "sweep.given_up": "a job whose target no node knows has its outcome, its live row is still there",
    "sweep.after_commit": "jobs whose target no node knows have failed for good; nothing was published",
    "node.registered": "a node has joined the cluster and does nothing yet",
    "heartbeat.before_beat": "a node is about to renew its lease",
    "heartbeat.after_beat": "a node has renewed its lease",
    "drain.before_release": "a node stops claiming; jobs it has not started are still claimed by it",
    "drain.before_sign_off": "a drained node has written everything; its row is still there",
    "cancel.before_commit": "a cancel is written, nothing is committed",
    "cancel.after_commit": "a cancel is stored; the caller has no answer yet, its own process was not notified",
    "tick.before_commit": "the runs of due ticks and the next ticks are written, nothing is committed",
    "tick.after_commit": "the runs of due ticks are stored; no poller was woken",
    "schedules.written": "declared schedules are written, nothing is committed",
    "schedules.retired": "schedules that no node declares are retired, nothing is committed",
    "statistics.taken": "a batch of counts is deleted, its sums are not written, nothing is committed",
    "statistics.before_commit": "a batch of counts is added to its minutes, nothing is committed",
    "statistics.after_commit": "a batch of counts is added up; the lease is still held",
    "flow.released": "followers of ended jobs have their due times, nothing is committed",
    "flow.wave": "followers of failed or canceled jobs are canceled, nothing is committed",
    "flow.counted": "ended members are counted for their groups, nothing is committed",
    "group.uncounted": "outcomes are stored; a group that another transaction held is not yet counted",
    "operation.after_commit": "a part of a long cascade or release is stored; the rest is not carried out yet",
    "settle.before_commit": "what an earlier transaction has left is written, nothing is committed",
    "judge.before": "an attempt has its verdict; no predicate of its branches has been called",
    "judge.after": "the branches of an attempt are decided; neither that nor its outcome is written",
    "revive.wave": "some followers of a job that is about to be started over are revived, nothing is committed",
    "revive.before_commit": "a retry and the followers that it revives are written, nothing is committed",
    "batch.chunk_before_commit": "children of a batch are written and the batch counts them, nothing is committed",
    "batch.chunk_after_commit": "children of a batch are stored; its loader has not read the next items",
    "batch.loaded": "a batch is marked as loaded, whether it has ended is not decided, nothing is committed",
    "batch.ended": "the end of a batch is written, what follows it is not released, nothing is committed",
    "signal.before_commit": "a signal is delivered and its jobs are PENDING, nothing is committed",
    "signal.after_commit": "a signal is delivered; the sender has no answer yet, its own process was not notified",
    "wait.expired": "jobs whose signal did not come in time are PENDING, nothing is committed",
    "step.after_body": "a step of an execution has run; only this process knows",
    "checkpoint.written": "finished steps of executions and items are written, nothing is committed",
    "checkpoint.before_commit": "finished steps, rejects and new parts are written, nothing is committed",
    "checkpoint.after_commit": "finished steps are stored; their claims do not know it, no node was woken",
    "expand.chunk_before_commit": "a chunk of an expansion is about to be written",
    "expand.chunk_after_commit": "a chunk of an expansion is stored; the next items are not read",
    "failing.before_commit": "the failure of an item is noted and its execution woken, nothing is committed",
    "part.before_commit": "a part has ended and the next one has a job, nothing is committed",
    "redrive.before_commit": "an execution is open again, nothing is committed",
    "redrive.after_commit": "an execution is open again; no node was woken, the caller has no answer yet",
    "wait.before_park": "a step waits for an answer from outside, nothing is committed",
    "wait.after_park": "a step waits for an answer from outside, and holds no slot any more",
    "answer.before_commit": "answers from outside are stored and what waited for them is due, nothing is committed",
    "answer.after_commit": "answers from outside are stored; no node was woken, the caller has no answer yet",
    "publish.first_target_written": "items are handed over to a subscriber, not to the next one, nothing is committed",
    "publish.chunk_after_commit": "a chunk of a publication is stored; its execution does not know it",
    "publish.backlog_before_commit": "hand-offs of the backlog are admitted, nothing is committed",
    "publish.backlog_after_commit": "hand-offs of the backlog are admitted; no node was woken",
    "sweep.execution_woken": "executions that waited for nothing are due, nothing is committed",
    "relay.claimed": "a relay has read what is due under its lease; nothing of it is delivered",
    "relay.delivered": "an outlet has taken deliveries; none of them is marked as delivered",
    "store.before_commit": "any transaction: all of it is written, nothing is committed",
    "store.after_commit": "any transaction: it is committed, the caller has no answer yet",
}
"""Every point, and what is true when a process passes it."""

logger = loggers.logger("windlass.failpoints")


class FailpointError(Exception):
    """Raised by the action `raise`."""


class Trap(NamedTuple):
    """An action at a point, and the pass at which it happens (None: every pass)."""

    action: str
    seconds: float
    nth: int | None


class _Traps:
    """The armed traps, and how often each point was passed."""

    def __init__(self, by_point: Mapping[str, list[Trap]]) -> None:
        self._by_point = by_point
        self._passes = dict.fromkeys(by_point, 0)
        self._lock = threading.Lock()

    def passed(self, name: str) -> None:
        traps = self._by_point.get(name)
        if traps is None:
            if name not in POINTS:
                raise AssertionError(f"failpoint {name!r} has no sentence in POINTS")
            return
        with self._lock:
            self._passes[name] += 1
            count = self._passes[name]
        for trap in traps:
            if trap.nth in (None, count):
                _spring(name, trap)


def parse(text: str) -> dict[str, list[Trap]]:
    """Parse the variable's text; raise ConfigurationError if it is malformed or names an unknown point."""
    found: dict[str, list[Trap]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, what = (piece.strip() for piece in part.partition("="))
        if not equals or name not in POINTS:
            raise ConfigurationError(
                f"{VARIABLE}: expected point=action with one of the points below, got {part!r}\n{_listed()}"
            )
        found.setdefault(name, []).append(_trap(part, what))
    return found


def _trap(part: str, what: str) -> Trap:
    action, at, nth = what.partition("@")
    action, colon, seconds = action.strip().partition(":")
    try:
        if action not in _ACTIONS or (colon == ":") != (action == "sleep") or (at and int(nth) < 1):
            raise ValueError
        if action == "sleep" and not 0 <= float(seconds) <= LONGEST_SLEEP:
            raise ValueError
        return Trap(action, float(seconds or 0), int(nth) if at else None)
    except ValueError:
        raise ConfigurationError(
            f"{VARIABLE}: expected {', '.join(sorted(set(_ACTIONS) - {'sleep'}))} or sleep:<seconds>, "
            f"perhaps with @<number of the pass, from 1>, got {part!r}; the points are\n{_listed()}"
        ) from None


def _listed() -> str:
    return "\n".join(f"  {name}: {sentence}" for name, sentence in POINTS.items())


def _raise(name: str, trap: Trap) -> None:
    raise FailpointError(f"failpoint {name}")


_ACTIONS: Final[Mapping[str, Callable[[str, Trap], None]]] = {
    "exit": lambda name, trap: os._exit(EXIT_CODE),
    "kill": lambda name, trap: os.kill(os.getpid(), signal.SIGKILL),
    "raise": _raise,
    "sleep": lambda name, trap: time.sleep(trap.seconds),  # noqa: TID251 - sleeping is what was asked for
    "stop": lambda name, trap: os.kill(os.getpid(), signal.SIGSTOP),
}


def _spring(name: str, trap: Trap) -> None:
    logger.warning("failpoint %s: %s", name, trap.action)
    _ACTIONS[trap.action](name, trap)


def _from_environment() -> _Traps | None:
    by_point = parse(os.environ.get(VARIABLE, ""))
    if by_point:
        logger.warning("%s is set: this process will fail on purpose at %s", VARIABLE, ", ".join(by_point))
    return _Traps(by_point) if by_point else None


_armed: _Traps | None = _from_environment()


def reached(name: str, when: Callable[[], bool] | None = None) -> None:
    """Pass a point. If `when` is given, the point counts as passed only if it returns True.

    `when` is called only while points are armed.
    """
    if _armed is not None and (when is None or when()):
        _armed.passed(name)


def are_armed() -> bool:
    """Return whether any failpoint is armed in this process."""
    return _armed is not None


@contextmanager
def armed(text: str) -> Iterator[None]:
    """Arm points in this process for the duration of a block, as the variable would."""
    global _armed  # noqa: PLW0603 - one switch for the process, read on the hot path
    before, _armed = _armed, _Traps(parse(text))
    try:
        yield
    finally:
        _armed = before
