"""The filters of `app.rejects`, checked, and the positions of its pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from windlass.client.filters import check_filter_names, checked_moment
from windlass.domain.clock import micros
from windlass.domain.identity import parse_job_id
from windlass.domain.reject import GROUPINGS
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.stores.plans.rejects import RejectFilters


class RejectFiltersDict(TypedDict, total=False):
    """The filters of `rejects.find`, `groups` and `redrive` as keywords; None matches anything."""

    tenant: str | None
    pipeline: str | None
    step: str | None
    fingerprint: str | None
    error_class: str | None
    execution_id: UUID | str | None
    created_after: datetime | None
    created_before: datetime | None


def checked_reject_filters(filters: RejectFiltersDict, verb: str) -> RejectFilters:
    """Return the filters for the store, or raise an error that names the invalid one."""
    given: Mapping[str, Any] = filters
    check_filter_names(given, RejectFiltersDict.__optional_keys__, f"rejects.{verb}")
    execution = given.get("execution_id")
    return RejectFilters(
        _text(given, "fingerprint"),
        None if execution is None else parse_job_id(execution),
        _text(given, "pipeline"),
        _text(given, "step"),
        _text(given, "error_class"),
        _text(given, "tenant"),
        _micros(given, "created_after"),
        _micros(given, "created_before"),
    )


def checked_grouping(by: object) -> str:
    """Return what rejects are grouped by, or raise InvalidOptionError."""
    if isinstance(by, str) and by in GROUPINGS:
        return by
    hint = did_you_mean(by, GROUPINGS)
    raise InvalidOptionError(f"by must be one of {', '.join(GROUPINGS)}, got {by!r}{hint}")


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None or (isinstance(value, str) and value):
        return value
    raise InvalidOptionError(f"{name} must be a text that is not empty, or None for any, got {value!r}")


def _micros(given: Mapping[str, Any], name: str) -> int | None:
    moment = checked_moment(given.get(name), name)
    return None if moment is None else micros(moment)
