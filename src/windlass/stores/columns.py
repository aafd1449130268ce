"""The columns of jobs, by name: statements and their input and output rows are all built from these lists.

A new job is stored with the fields of `NewJob`; a claim returns those of `Claim` and `Payload`. A statement refers to a
list in braces: `{job_columns}` is `id, queue, …`, `{j.job_columns}` is `j.id, j.queue, …`, `{:job_columns}` is `:id,
:queue, …` and `{h|d.state_columns}` is `coalesce(h.status, d.status), …`.
"""

from __future__ import annotations

from typing import Any, Final, get_args, get_type_hints

from windlass.domain.dependencies import FlowPosition
from windlass.domain.job import Claim, JobId, NewJob, Payload
from windlass.domain.stored_schedule import ScheduleRow

_NOT_OF_THE_JOB = frozenset({"due_at", "delay_us", "on_conflict", "expires_at", "expires_us", "position", "wait"})
"""Fields of `NewJob` that are no columns of `windlass_job`: of other tables, and for admission."""

NEW_JOB: Final = tuple(name for name in NewJob._fields if name not in _NOT_OF_THE_JOB)
JOB: Final = (*NEW_JOB, "created_at")
"""`windlass_job`, written once."""
STATE: Final = ("status", "fence", "attempts", "crash_count", "node", "due", "picked_at", "paused_from")
"""In `windlass_hot` while the job is live, then in `windlass_done`."""
END: Final = ("result", "error", "error_class", "reason", "superseded_by", "canceled_by", "started_at", "finished_at")
"""Only in `windlass_done`."""
PROGRESS: Final = ("progress_done", "progress_total", "progress_message", "progress_at")
STORED_JOB: Final = (*JOB, *STATE, *END, *PROGRESS)
"""Everything stored of a job, in the order in which `get_jobs` reads it."""
ARCHIVE: Final = ("id", "queue", "target", "status", "business_key", "created_at", "finished_at", "flow_id")
"""What has a column in `windlass_archive`. The rest of `STORED_JOB`, and of the position in a flow, is in its text."""
ATTEMPT: Final = (
    *("job_id", "fence", "number", "node", "picked_at", "started_at", "ended_at", "wait_us", "outcome"),
    *("error_class", "error", "traceback"),
)
"""`windlass_attempt`."""
SIGNAL_WAIT: Final = ("job_id", "key", "timeout_us", "open", "signal", "by_whom", "at")
"""`windlass_signal_wait`."""
FLOW: Final = ("job_id", *(name for name in FlowPosition._fields if name not in ("answers", "batch")))
"""`windlass_flow`."""
LAST_ATTEMPT: Final = ("error", "error_class", "wait_us", "started_at", "ended_at")
"""What is read of the last attempt that counted."""

_RENAMED = {"job_id": "id", "due_at": "due"}
CLAIM: Final = tuple(_RENAMED.get(name, name) for name in Claim._fields)

LISTS: Final[dict[str, tuple[str, ...]]] = {
    "new_job": NEW_JOB,
    "job": JOB,
    "state": STATE,
    "end": END,
    "archive": ARCHIVE,
    "attempt": ATTEMPT,
    "flow": FLOW,
    "signal_wait": SIGNAL_WAIT,
    "last_attempt": LAST_ATTEMPT,
    "claim": CLAIM[1:],
    "payload": Payload._fields,
    "schedule": ScheduleRow._fields,
}
"""What statements name as `{job_columns}` and so on. A claim's id is apart: PostgreSQL gives it as text there."""


def _type(hint: Any) -> str:
    kinds = (hint, *get_args(hint))
    if JobId in kinds:
        return "id"
    return "integer" if int in kinds else "text"


NEW_JOB_TYPES: Final = {
    name: _type(hint)
    for name, hint in get_type_hints(NewJob, include_extras=True).items()
    if name not in ("position", "wait")
}
"""The fields of `NewJob`, in order, with their types as the tables of statements have them."""
