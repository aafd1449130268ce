"""The stored result of an execution."""

from __future__ import annotations

from typing import Any

from windlass import loggers
from windlass.domain.item_paths import FIRST
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.stores.plans import items
from windlass.submission.codec import dropped_result, stored_result

logger = loggers.logger("windlass.pipelines")

PAGE = 500


def result_of_value(claimed: ClaimedExecution, value: Any) -> str | None:
    """Return the stored form of a single value; one that cannot be kept is replaced by a marker."""
    parts = claimed.runtime.parts
    text, warning = stored_result(parts.serializer, value, result_type(claimed), parts.settings.max_value_bytes)
    if warning:
        logger.warning("execution %s: %s", claimed.state.id, warning)
    return text


async def result_of_items(claimed: ClaimedExecution) -> str | None:
    """Return the list of an execution's items, if it is not too large; no more than that is read."""
    limit, size, after = claimed.runtime.parts.settings.max_value_bytes, 0, FIRST
    found: list[Any] = []
    while True:
        page_range = (claimed.state.id, claimed.state.stage, after, PAGE)
        page = await claimed.runtime.read(items.done, *page_range)
        size += sum(len(item.value or "") for item in page)
        if size > limit:
            reason = f"its items take more than {limit:,} bytes (pipelines.max_value_bytes); read them with items()"
            return dropped_result(reason, size)
        found += [claimed.values.decode(item.type, item.value) for item in page]
        if len(page) < PAGE:
            return result_of_value(claimed, found)
        after = page[-1].path


def result_type(claimed: ClaimedExecution) -> Any:
    """Return the type of the result."""
    return claimed.definition.result_type
