"""What type checkers make of schedules. Never run: `mypy --strict` and pyright read it.

A line that must be an error carries an ignore with its code; mypy reports the ignore if the error goes away.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from windlass import JobHandle, Misfire, Overlap, Schedule, ScheduleSkipped, Windlass, every

app = Windlass("sqlite://")


@app.recurring("0 2 * * *", zone="Europe/Berlin", misfire=Misfire.SKIP, overlap=Overlap.QUEUE, max_retries=5)
def nightly(region: str = "eu") -> int:
    return len(region)


@app.recurring(every(hours=1), key="hourly", jitter=timedelta(seconds=30), start=datetime(2030, 1, 1, tzinfo=UTC))
async def hourly() -> str:
    return "done"


class Shop:
    """Methods recur, too."""

    @app.recurring("0 * * * *", key="clean")
    @app.job(queue="night")
    def clean(self) -> bool:
        return True


@app.on(ScheduleSkipped)
def skipped(event: ScheduleSkipped) -> None:
    assert_type(event.tick, datetime)
    assert_type(event.key, str)


def declared_jobs_are_jobs() -> None:
    assert_type(nightly.enqueue("us"), JobHandle[int])
    assert_type(hourly.enqueue(), JobHandle[str])
    nightly.enqueue(7)  # type: ignore[arg-type]


def stored() -> None:
    app.schedule("sync", every(minutes=5), nightly.bind("us"), end=datetime(2031, 1, 1, tzinfo=UTC))
    app.schedule("sync", "*/5 * * * *", hourly.bind(), zone="Asia/Tokyo")
    app.schedule("sync", 5, hourly.bind())  # type: ignore[arg-type]
    assert_type(app.schedules.list(), list[Schedule])
    assert_type(app.schedules.pause("sync"), bool)
    assert_type(app.schedules.trigger("sync"), JobHandle[Any] | None)


async def awaited() -> None:
    await app.aschedule("sync", every(minutes=5), nightly.bind("us"))
    assert_type(await app.schedules.alist(), list[Schedule])
    assert_type(await app.schedules.aremove("sync"), bool)
