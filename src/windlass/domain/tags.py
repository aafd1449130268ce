"""Tags as they are stored beside a job: a JSON list, or nothing."""

from __future__ import annotations

import json


def tags_text(tags: tuple[str, ...]) -> str | None:
    """Return tags in their stored form."""
    return json.dumps(tags) if tags else None


def tags_of(text: str | None) -> tuple[str, ...]:
    """Return stored tags; none if they are damaged: a whole claim must not fail because of one row."""
    if not text:
        return ()
    try:
        tags = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return ()
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
