"""The schedules that an application declares with `@app.recurring`. Nothing is stored before a worker starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from windlass.domain.cluster import Declared
from windlass.domain.options import JobOptions
from windlass.domain.stored_schedule import Declaration
from windlass.errors import ConfigurationError
from windlass.recurring.schedule_options import ScheduleTimes, check_options, check_takes_nothing
from windlass.runtime.global_names import global_name_of
from windlass.stores.plans.schedule_calls import ScheduledCall
from windlass.submission.job_function import BoundOptions, Enqueueable
from windlass.submission.submitter import Submitter

UNNAMED: Final = ""
"""The origin of schedules of an application that no module has as a global: they are never retired."""


class _Entry(NamedTuple):
    job: Enqueueable[..., Any]
    times: ScheduleTimes
    options: JobOptions


class DeclaredSchedules:
    """Schedules by key."""

    def __init__(self, app: object, submitter: Callable[[], Submitter]) -> None:
        self._app = app
        self._submitter = submitter
        self._entries: dict[str, _Entry] = {}

    def add(self, key: str | None, job: Enqueueable[..., Any], times: ScheduleTimes, options: JobOptions) -> None:
        """Declare a schedule; its key is the job's target unless one is given."""
        merged = job.options.merged(options)
        check_options(merged)
        check_takes_nothing(job.function, is_static=job.wrapping is staticmethod)
        name = job.target if key is None else key
        known = self._entries.get(name)
        if known is not None and (known.job is job or known.job.target != job.target):
            raise ConfigurationError(
                f"the key {name!r} is declared twice, for {known.job.target} and {job.target}; give key= to one of them"
            )
        self._entries[name] = _Entry(job, times, merged)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    @property
    def keys(self) -> list[str]:
        """The declared keys, in order."""
        return sorted(self._entries)

    @property
    def origin(self) -> str:
        """`module:attribute` of the application; empty if it has no such name."""
        return global_name_of(self._app) or UNNAMED

    @property
    def digest(self) -> str:
        """Hash of the declared keys."""
        return blake2b("\n".join(self.keys).encode(), digest_size=16).hexdigest()

    @property
    def as_declared(self) -> Declared:
        """What a node stores about them."""
        return Declared(self.origin or None, self.digest)

    def declarations(self) -> Sequence[Declaration]:
        """Return them as they are stored, in the order of their keys."""
        return [self._declaration(key, self._entries[key]) for key in self.keys]

    def _declaration(self, key: str, entry: _Entry) -> Declaration:
        call = BoundOptions(entry.job, entry.options).bind()
        return entry.times.declare(key, ScheduledCall.of(self._submitter().row(call)).text)
