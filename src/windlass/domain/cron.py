"""Times by cron expression: five fields by Unix rules, in UTC.

```python
Cron("0 2 * * *").after(datetime(2026, 11, 16, 12, tzinfo=UTC))  # 2026-11-17 02:00 UTC
```
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from cronsim import CronSim, CronSimError

from windlass.errors import InvalidOptionError

FIELDS: Final = ("minute", "hour", "day-of-month", "month", "day-of-week")
_SOME_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Cron:
    """A checked expression; an error names the field that is wrong."""

    __slots__ = ("expression",)

    def __init__(self, expression: str) -> None:
        self.expression = " ".join(_checked(expression).split())

    def after(self, moment: datetime) -> datetime:
        """Return the first matching time after a moment."""
        return next(CronSim(self.expression, moment.astimezone(UTC)))

    def __repr__(self) -> str:
        return f"Cron({self.expression!r})"


def _checked(expression: object) -> str:
    if not isinstance(expression, str) or len(expression.split()) != len(FIELDS):
        raise _refusal(expression, f"it needs {len(FIELDS)} fields ({', '.join(FIELDS)})")
    for number, field in enumerate(FIELDS):
        alone = ["*"] * len(FIELDS)
        alone[number] = expression.split()[number]
        if not _fires(" ".join(alone)):
            raise _refusal(expression, f"its {field} {alone[number]!r} is none")
    if not _fires(expression):
        raise _refusal(expression, "no month has such a day-of-month, so it never fires")
    return expression


def _fires(expression: str) -> bool:
    try:
        next(CronSim(expression, _SOME_DAY))
    except (CronSimError, StopIteration):
        return False
    return True


def _refusal(expression: object, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"expected a cron expression like '0 2 * * *' (02:00 UTC), got {expression!r}: {why}")
