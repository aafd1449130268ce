"""Rows that were damaged: what of a claim cannot be believed, and so must not be computed with.

A hand edit, another program, a disk: one such row fails alone. Its claim is mended as far as the engine computes with
it, the body is not entered, and the job ends as `poison_payload`.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from windlass import loggers
from windlass.domain.job import Claim, Payload
from windlass.errors import SerializationError
from windlass.stores.database import Database
from windlass.stores.plans import damaged

logger = loggers.logger("windlass.damage")

MOST_FENCE: Final = 1 << 62
"""What a claim sets a fence to that it cannot raise."""
MOST_COUNTED: Final = 1_000_000
"""Attempts and crashes that a job can have."""
MOST_MICROS: Final = 1 << 62

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_read_params: Final = msgspec.json.Decoder(dict[str, object]).decode


def is_sound(claim: Claim) -> bool:
    """Whether all that a claim brings can be true. Asked of every claim, so it is quick."""
    try:
        return (
            0 <= claim.fence < MOST_FENCE
            and 0 <= claim.attempts < MOST_COUNTED
            and 0 <= claim.crash_count < MOST_COUNTED
            and -MOST_MICROS < claim.due_at < MOST_MICROS
            and (claim.expires is None or -MOST_MICROS < claim.expires < MOST_MICROS)
            and type(claim.target) is str
        )
    except TypeError:  # SQLite keeps texts in columns of numbers
        return False


def is_id(job_id: str) -> bool:
    """Whether it is the id of a job: without one nothing can be written about it."""
    return type(job_id) is str and _ID.fullmatch(job_id) is not None


def mended(claim: Claim) -> Claim:
    """A claim whose numbers can be computed with. Its fence stays: it is what writes are guarded by."""
    return claim._replace(
        target=claim.target if type(claim.target) is str else repr(claim.target),
        attempts=_counted(claim.attempts),
        crash_count=_counted(claim.crash_count),
        due_at=claim.picked_at,
        expires=None,
    )


def damage_of_claim(claim: Claim) -> SerializationError:
    """What is wrong with it, for people."""
    return SerializationError(
        f"the stored row is damaged: fence {claim.fence!r}, attempts {claim.attempts!r}, crash_count "
        f"{claim.crash_count!r}, due {claim.due_at!r}"
    )


async def pause_damaged(database: Database, claim: Claim, why: str) -> None:
    """Take a job whose outcome cannot be written out of everybody's way."""
    await database.arun(damaged.pause, claim.job_id, claim.fence)
    logger.error(
        "job %s is damaged and cannot be failed: %s; it was paused: mend its rows and resume it, or cancel it",
        *(claim.job_id, why),
    )


def check_payload(payload: Payload) -> None:
    """Raise `SerializationError` if the immutable part of a job is none."""
    if type(payload.args) is not str or type(payload.created_at) is not int or abs(payload.created_at) >= MOST_MICROS:
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
    return number if type(number) is int and 0 <= number < MOST_COUNTED else 0
