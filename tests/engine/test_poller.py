"""The poller by itself: what is heard while it looks is not forgotten when the answer comes."""

import asyncio
from pathlib import Path

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps
from tests.stores.recording import recorded
from tests.support.facts import rows
from windlass import JobStatus, PollerSettings, Settings
from windlass.engine import poller as polling
from windlass.stores import claiming, queues
from windlass.stores.plan import Step


async def test_jobs_that_end_elsewhere_while_the_poller_looks_make_it_look_again(empty_postgres: str):
    """J3.6, J6.2: the answer on its way may be older than the place they gave back, and nobody would tell again."""
    apps = Apps(empty_postgres)
    app = apps(settings=ONLY_WAKEUPS)
    app.configure_resource("stripe", 1, retry_delay=600)
    rows(apps.url, "UPDATE windlass_gate SET in_use = 1")  # by a job of another node
    add = app.job(resource="stripe", queue="mail")(jobs.aadd)
    async with app.worker() as worker:
        assert worker.node is not None
        poller = worker.node.poller
        await app.apause_queue("mail")
        handle = await add.aenqueue(1, 2)
        assert not await poller.anything_due()
        rows(apps.url, "UPDATE windlass_queue SET paused = 0")  # told to nobody
        looking = asyncio.create_task(poller.anything_due())
        await asyncio.sleep(0)  # it has asked, and has no answer yet
        poller.jobs_ended()
        assert not looking.done()
        assert not await looking, "the place was taken when it looked"
        rows(apps.url, "INSERT INTO windlass_freed (gate, places) VALUES ('resource:stripe', 1)")
        assert await handle.aresult(timeout=LONG) == 3
    apps.close()


def test_a_node_whose_claims_come_back_full_does_not_look_again_after_each_of_its_own_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """J3.6: a watched file only tells that somebody wrote, which under load is mostly the node itself."""
    looks: list[Step] = []
    claims: list[Step] = []
    monkeypatch.setattr(queues, "heads", recorded(looks, queues.heads))
    monkeypatch.setattr(claiming, "claim", recorded(claims, claiming.claim))
    monkeypatch.setattr(polling, "BUSY_FRESH", 60.0)  # however slow the machine
    apps = Apps(f"sqlite:///{tmp_path / 'jobs.db'}")
    app = apps(settings=Settings(poller=PollerSettings(batch_size=20)))
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(number)) for number in range(2000)])
    with app.worker(concurrency=20):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    apps.close()
    asked = sum(step.name == "heads" for step in looks)
    made = sum(step.name == "claim_heads" for step in claims)
    assert made >= 50
    assert asked < made / 8, f"{asked} looks for {made} claims"
