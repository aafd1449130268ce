"""Conversion of rows of dead letters and alerts to public values, and checks of their filters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict
from uuid import UUID

from windlass.client.filters import Target, check_filter_names, checked_moment, checked_target
from windlass.domain.clock import from_micros, micros
from windlass.domain.dead_letter import KINDS, REASONS, Alert, DeadLetterGroup
from windlass.domain.keys import check_queue, check_tags
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.stores.plans.alerts import AlertFilters
from windlass.stores.plans.triage import LetterFilters, LetterGroup, Spot

_SPOT: Final = re.compile(r"([0-9]{1,19})\.([0-9a-f-]{36})")


class DeadLetterFilters(TypedDict, total=False):
    """The filters of `dead_letters.find` and `groups` as keywords; None matches anything."""

    fingerprint: str | None
    target: Target | None
    error_class: str | None
    reason: str | None
    queue: str | None
    tag: str | None
    created_after: datetime | None
    created_before: datetime | None


class RedriveFilters(DeadLetterFilters, total=False):
    """The filters of `dead_letters.redrive` as keywords: the same, and the kind."""

    kind: str | None


class AlertFilter(TypedDict, total=False):
    """The filters of `alerts.find` as keywords; None matches anything."""

    target: Target | None
    error_hash: str | None
    error_class: str | None
    created_after: datetime | None
    created_before: datetime | None


def checked_letter_filters(filters: RedriveFilters, verb: str) -> LetterFilters:
    """Return the filters for the store, or raise an error that names the invalid one."""
    given: Mapping[str, Any] = filters
    check_filter_names(given, RedriveFilters.__optional_keys__, f"dead_letters.{verb}")
    reason, queue, tag = given.get("reason"), given.get("queue"), given.get("tag")
    return LetterFilters(
        _text(given, "fingerprint"),
        checked_target(given.get("target")),
        None if queue is None else check_queue(queue),
        _text(given, "error_class"),
        None if reason is None else checked_reason(reason),
        None if tag is None else check_tags([tag])[0],
        _micros(given, "created_after"),
        _micros(given, "created_before"),
        kind=checked_kind(given.get("kind")),
    )


def checked_alert_filters(filters: AlertFilter) -> AlertFilters:
    """Do the same for alerts."""
    given: Mapping[str, Any] = filters
    check_filter_names(given, AlertFilter.__optional_keys__, "alerts.find")
    texts = (checked_target(given.get("target")), _text(given, "error_hash"), _text(given, "error_class"))
    return AlertFilters(*texts, _micros(given, "created_after"), _micros(given, "created_before"))


def checked_reason(reason: object) -> str:
    """Return a reason if Windlass has it, or raise InvalidOptionError."""
    if isinstance(reason, str) and reason in REASONS:
        return reason
    hint = did_you_mean(reason, REASONS)
    raise InvalidOptionError(f"reason must be one of {', '.join(REASONS)}, got {reason!r}{hint}")


def checked_kind(kind: object) -> str | None:
    """Return a kind of dead letters if it exists, None for all, or raise InvalidOptionError."""
    if kind is None or (isinstance(kind, str) and kind in KINDS):
        return kind
    hint = did_you_mean(kind, KINDS)
    raise InvalidOptionError(f"kind must be 'job' or 'execution', or None for both, got {kind!r}{hint}")


def spot_of(cursor: str | None) -> Spot | None:
    """Return where a page of dead letters or alerts begins."""
    if cursor is None:
        return None
    found = _SPOT.fullmatch(str(cursor))
    if found is None:
        raise InvalidOptionError(f"a cursor comes from the page before (page.next_cursor), got {cursor!r}")
    return Spot(int(found[1]), found[2])


def cursor_of(spot: tuple[int, str] | None) -> str | None:
    """Return the cursor of a position; the inverse of `spot_of`."""
    return None if spot is None else f"{spot[0]}.{spot[1]}"


def group_of(group: LetterGroup) -> DeadLetterGroup:
    """Return a group as a `DeadLetterGroup`."""
    return DeadLetterGroup(
        fingerprint=group.fingerprint,
        target=group.target,
        error_class=group.error_class,
        sample=group.sample,
        count=group.size,
        first_at=from_micros(group.first_at),
        last_at=from_micros(group.last_at),
    )


def alert_of(row: Sequence[Any]) -> Alert:
    """Return a row of `latest_alerts` as an `Alert`."""
    _, target, error_hash, error_class, sample, count, first_job, last_job, first_at, last_at = row
    return Alert(
        target=target,
        error_hash=error_hash,
        error_class=error_class,
        sample=sample,
        count=count,
        first_job_id=UUID(first_job),
        last_job_id=UUID(last_job),
        first_at=from_micros(first_at),
        last_at=from_micros(last_at),
    )


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None or (isinstance(value, str) and value):
        return value
    raise InvalidOptionError(f"{name} must be a text that is not empty, or None for any, got {value!r}")


def _micros(given: Mapping[str, Any], name: str) -> int | None:
    moment = checked_moment(given.get(name), name)
    return None if moment is None else micros(moment)
