"""The names that Celery, RQ, Dramatiq, Huey and Procrastinate use, so that errors can suggest ours."""

from collections.abc import Mapping
from typing import Final

OPTIONS: Final[Mapping[str, str]] = {
    "countdown": "delay",
    "eta": "run_at",
    "schedule_in": "delay",
    "schedule_at": "run_at",
    "scheduled_at": "run_at",
    "ttl": "expires",
    "max_age": "expires",
    "retry": "max_retries",
    "autoretry_for": "retry_on",
    "retry_when": "retry_on",
    "throws": "give_up_on",
    "retry_delay": "backoff",
    "default_retry_delay": "backoff",
    "retry_backoff": "backoff",
    "min_backoff": "backoff",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "job_timeout": "timeout",
    "routing_key": "queue",
    "queue_name": "queue",
    "lock": "business_key",
    "queueing_lock": "business_key",
    "task_id": "idempotency_key",
    "job_id": "idempotency_key",
    "link": "on_success",
    "link_error": "on_failure",
    "headers": "params",
    "meta": "params",
}
"""Options of a job."""

OF_A_JOB: Final[Mapping[str, str]] = {
    "delay": "enqueue(...)",
    "send": "enqueue(...)",
    "defer": "enqueue(...)",
    "kiq": "enqueue(...)",
    "apply_async": "using(delay=60).enqueue(...)",
    "send_with_options": "using(delay=60).enqueue(...)",
    "configure": "using(...)",
    "defer_async": "aenqueue(...)",
    "s": "bind(...)",
    "si": "bind(...)",
    "signature": "bind(...)",
    "message": "bind(...)",
}
"""Methods of a job."""

OF_AN_APPLICATION: Final[Mapping[str, str]] = {
    "task": "job",
    "actor": "job",
    "send_task": "enqueue_by_name",
    "configure_task": "enqueue_by_name",
}
"""Methods of an application."""


def not_here(what: str, name: str, known: Mapping[str, str]) -> str:
    """Return the message for an unknown attribute, with our name for it if known."""
    hint = f"; write {what}.{known[name]}" if name in known else ""
    return f"{what} has no attribute {name!r}{hint}"
