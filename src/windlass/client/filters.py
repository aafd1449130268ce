"""The filters of `find` and `retry_many`, checked, and the pages they return."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypedDict, TypeVar

from windlass.domain.identity import parse_job_id
from windlass.domain.keys import check_key, check_queue, check_tags
from windlass.domain.states import JobStatus
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.stores.plans.alerts import AlertFilters
from windlass.stores.plans.search import Filters
from windlass.stores.plans.triage import LetterFilters
from windlass.submission.job_function import AsyncJobFunction, Enqueueable, JobFunction

T = TypeVar("T")
Asked = TypeVar("Asked", Filters, LetterFilters, AlertFilters)

NamesOf: TypeAlias = Callable[[str], frozenset[str]]
"""Returns every name of the target that has this one."""

MAX_IN_A_PAGE = 1_000

Target: TypeAlias = str | JobFunction[..., Any] | AsyncJobFunction[..., Any]
"""A filter by target: a stored name, or the job function that has it."""


class JobFilters(TypedDict, total=False):
    """The filters of `retry_many` as keywords; None matches anything."""

    queue: str | None
    tag: str | None
    target: Target | None
    business_key: str | None
    created_after: datetime | None
    created_before: datetime | None


class FindFilters(JobFilters, total=False):
    """The filters of `find` as keywords."""

    status: JobStatus | str | None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of results; `next_cursor` leads to the next one, None if there is none.

    Example: `page = app.find(status="FAILED"); more = app.find(status="FAILED", cursor=page.next_cursor)`
    """

    items: list[T]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


FIND_NAMES: Final = FindFilters.__optional_keys__
RETRY_NAMES: Final = JobFilters.__optional_keys__


def checked_filters(filters: FindFilters | JobFilters, verb: str, known: Collection[str]) -> Filters:
    """Return the filters for the store, all of them in `known`, or raise an error that names the invalid one."""
    given: Mapping[str, Any] = filters
    check_filter_names(given, known, verb)
    status, queue, tag = given.get("status"), given.get("queue"), given.get("tag")
    business_key = given.get("business_key")
    return Filters(
        None if status is None else _status(status),
        None if queue is None else check_queue(queue),
        None if tag is None else check_tags([tag])[0],
        checked_target(given.get("target")),
        None if business_key is None else check_key(business_key, "business_key"),
        checked_moment(given.get("created_after"), "created_after"),
        checked_moment(given.get("created_before"), "created_before"),
    )


def with_names(filters: Asked, names_of: NamesOf) -> Asked:
    """Return the filters with every name under which jobs of the target may be stored."""
    target = filters.target
    return filters if target is None else filters._replace(aliases=names_of(target) - {target})


def check_filter_names(given: Mapping[str, Any], known: Collection[str], verb: str) -> None:
    """Refuse unknown filters: they would be ignored, and far more would be found than was meant."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {', '.join(sorted(known))}"
            raise InvalidOptionError(f"{verb}() has no filter {name!r}{hint}")


def checked_target(target: object) -> str | None:
    """Return the stored name of a filter."""
    if isinstance(target, Enqueueable):
        return target.target
    if target is None or (isinstance(target, str) and target.strip()):
        return target
    raise InvalidOptionError(
        f"target must be a stored name like 'shop:charge' or the job function itself, got {target!r}"
    )


def checked_limit(limit: object) -> int:
    """Return the size of a page, or raise InvalidOptionError."""
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= MAX_IN_A_PAGE:
        return limit
    raise InvalidOptionError(f"limit must be a whole number from 1 to {MAX_IN_A_PAGE:,}, got {limit!r}")


def parse_cursor(cursor: str | None) -> str | None:
    """Return where a page begins."""
    if cursor is None:
        return None
    try:
        return parse_job_id(cursor)
    except InvalidOptionError:
        raise InvalidOptionError(f"a cursor comes from the page before (page.next_cursor), got {cursor!r}") from None


def _status(status: JobStatus | str) -> JobStatus:
    try:
        return JobStatus(status.upper())
    except (ValueError, AttributeError):
        names = ", ".join(JobStatus)
        raise InvalidOptionError(f"status must be one of {names}, got {status!r}") from None


def checked_moment(value: object, name: str) -> datetime | None:
    """Return a time if it has a zone, or raise InvalidOptionError."""
    if value is None:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    raise InvalidOptionError(
        f"{name} must be an aware datetime, e.g. datetime.now(UTC) - timedelta(days=1), got {value!r}"
    )
