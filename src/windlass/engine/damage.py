"""Damaged rows: which values of a claim cannot be trusted in computations.

After a manual edit, a write of another program or a disk error, only the job of that row fails. Its claim is repaired
as far as the engine computes with it, the body is not entered, and the job ends as `poison_payload`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from windlass import loggers
from windlass.domain.job import Claim, Payload
from windlass.errors import SerializationError
from windlass.stores.database import Database
from windlass.stores.plans import damaged

logger = loggers.logger("windlass.damage")

MAX_FENCE: Final = 1 << 62
"""The fence that a claim sets when it cannot raise it."""
MAX_COUNTED: Final = 1_000_000
"""Limit of the attempts and crashes that a job can have."""
MAX_MICROS: Final = 1 << 62

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_read_params: Final = msgspec.json.Decoder(dict[str, object]).decode


def is_sound(claim: Claim) -> bool:
    """Return whether all values of a claim are possible. Called for every claim, so it is fast."""
    try:
        return (
            0 <= claim.fence < MAX_FENCE
            and 0 <= claim.attempts < MAX_COUNTED
            and 0 <= claim.crash_count < MAX_COUNTED
            and -MAX_MICROS < claim.due_at < MAX_MICROS
            and (claim.expires is None or -MAX_MICROS < claim.expires < MAX_MICROS)
            and type(claim.target) is str
        )
    except TypeError:  # SQLite keeps texts in columns of numbers
        return False


def is_id(job_id: str) -> bool:
    """Return whether it is the id of a job: without one nothing can be written about it."""
    return type(job_id) is str and _ID.fullmatch(job_id) is not None


def repaired(claim: Claim) -> Claim:
    """Return the claim with numbers that can be computed with. Its fence stays: it guards the writes."""
    return claim._replace(
        target=claim.target if type(claim.target) is str else repr(claim.target),
        attempts=_counted(claim.attempts),
        crash_count=_counted(claim.crash_count),
        due_at=claim.picked_at,
        expires=None,
    )


def damage_of_claim(claim: Claim) -> SerializationError:
    """Return an error that describes what is wrong with the claim."""
    return SerializationError(
        f"the stored row is damaged: fence {claim.fence!r}, attempts {claim.attempts!r}, crash_count "
        f"{claim.crash_count!r}, due {claim.due_at!r}"
    )


async def pause_damaged(database: Database, claim: Claim, why: str) -> None:
    """Pause a job whose outcome cannot be written, so that no node claims it again."""
    await database.arun(damaged.pause, claim.job_id, claim.fence)
    logger.error(
        "job %s is damaged and cannot be failed: %s; it was paused: repair its rows and resume it, or cancel it",
        *(claim.job_id, why),
    )


def report_nameless(rows: Sequence[object]) -> None:
    """Log rows whose ids are no texts, and which a claim has therefore paused."""
    for row in rows:
        logger.error("a row of windlass_hot with the id %r is damaged; it was paused: repair or delete it", row)


def check_payload(payload: Payload) -> None:
    """Raise `SerializationError` if the immutable part of a job is invalid."""
    if type(payload.args) is not str or type(payload.created_at) is not int or abs(payload.created_at) >= MAX_MICROS:
        raise SerializationError(
            f"the stored row is damaged: arguments of type {type(payload.args).__name__}, created at "
            f"{payload.created_at!r}"
        )
    if payload.params is not None:
        try:
            _read_params(payload.params)
        except (msgspec.DecodeError, RecursionError, TypeError) as error:
            raise SerializationError(f"stored params are damaged: {error}") from None


def _counted(number: object) -> int:
    return number if type(number) is int and 0 <= number < MAX_COUNTED else 0
