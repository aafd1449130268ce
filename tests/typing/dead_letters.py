"""What type checkers make of `app.dead_letters` and `app.alerts`. Never run, like api.py."""

from datetime import timedelta
from typing import assert_type
from uuid import UUID

from windlass import Alert, DeadLetter, DeadLetterGroup, Page, Redrive, Windlass


async def dead_letters(app: Windlass) -> None:
    assert_type(app.dead_letters.find(target="shop:charge", reason="worker_lost"), Page[DeadLetter])
    assert_type(await app.dead_letters.afind(limit=5), Page[DeadLetter])
    assert_type(app.dead_letters.get("0190"), DeadLetter)
    assert_type(app.dead_letters.groups(queue="billing"), list[DeadLetterGroup])
    assert_type(app.dead_letters.redrive(10, rate=5, note="mended", reason="worker_lost", stop_at=0.2), Redrive)
    assert_type((await app.dead_letters.aredrive(dry_run=True)).ids, tuple[UUID, ...])
    assert_type(app.dead_letters.purge(timedelta(days=90)), int)
    assert_type(app.dead_letters.find("execution", target="invoices"), Page[DeadLetter])
    assert_type(app.dead_letters.redrive(kind="execution"), Redrive)
    assert_type(app.dead_letters.purge(1, kind="job"), int)
    assert_type(app.alerts.find(target="shop:charge"), Page[Alert])
    app.dead_letters.find(color="red")  # type: ignore[call-arg]
    app.dead_letters.redrive(fingerprint=7)  # type: ignore[arg-type]
    app.dead_letters.purge()  # type: ignore[call-arg]
