"""The poller by itself: a notification during a query is not lost when the answer arrives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps
from tests.stores.recording import recorded
from tests.support.facts import rows
from windlass import JobStatus, PollerSettings, Settings
from windlass.domain.job import Claim, Payload
from windlass.engine import outlook
from windlass.engine.poller import _lags
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import claims, queues


async def test_jobs_that_end_elsewhere_while_the_poller_looks_make_it_look_again(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
):
    """J3.6, J6.2: the pending answer may be older than the released permit, and no second notification comes."""
    apps = Apps(empty_postgres)
    app = apps(settings=ONLY_WAKEUPS)
    app.configure_resource("stripe", 1, retry_delay=600)
    rows(apps.url, "UPDATE windlass_gate SET in_use = 1")  # by a job of another node
    add = app.job(resource="stripe", queue="mail")(jobs.aadd)
    async with app.worker() as worker:
        assert worker.node is not None
        poller, work = worker.node.poller, worker.node.engine.work
        await poller.stop()  # only this test looks from now on
        await app.apause_queue("mail")
        await add.aenqueue(1, 2)
        assert not await poller.anything_due()
        await app.aresume_queue("mail")
        woken: list[str] = []

        def end_elsewhere() -> None:
            rows(apps.url, "INSERT INTO windlass_freed (gate, places) VALUES ('resource:stripe', 1)")
            monkeypatch.setattr(work.bell, "ring", lambda: woken.append("to look again"))
            work.jobs_ended()

        with monkeypatch.context() as once:
            once.setattr(queues, "heads", followed_by(end_elsewhere, queues.heads))
            assert not await poller.anything_due(), "the place was taken when it looked"
        assert woken == ["to look again"]
        assert await poller.anything_due()
    apps.close()


def followed_by(act: Callable[[], None], plan: Callable[..., Plan[Any]]) -> Callable[..., Plan[Any]]:
    """The same plan; once it has its answers, and before its caller has them, something happens."""

    def longer(dialect: Dialect, *args: Any, **kwargs: Any) -> Plan[Any]:
        answer = yield from plan(dialect, *args, **kwargs)
        act()
        return answer

    return longer


def test_a_node_whose_claims_are_full_does_not_poll_after_each_of_its_own_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """J3.6: a watched file only shows that there was a write, which under load is mostly the node's own."""
    looks: list[Step] = []
    claimed: list[Step] = []
    monkeypatch.setattr(queues, "heads", recorded(looks, queues.heads))
    monkeypatch.setattr(claims, "claim", recorded(claimed, claims.claim))
    monkeypatch.setattr(outlook, "BUSY_FRESH", 60.0)  # however slow the machine
    apps = Apps(f"sqlite:///{tmp_path / 'jobs.db'}")
    app = apps(settings=Settings(poller=PollerSettings(batch_size=20)))
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(number)) for number in range(2000)])
    with app.worker(concurrency=20):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    apps.close()
    asked = sum(step.name == "heads" for step in looks)
    made = sum(step.name == "claim_heads" for step in claimed)
    assert made >= 50
    assert asked < made / 3, f"{asked} looks for {made} claims"


@pytest.mark.parametrize(
    ("due", "created", "lags"),
    [(70, 20, [30]), (0, 80, [20]), (70, None, [30]), ("soon", 20, []), (70, "yesterday", []), (None, 20, [])],
)
def test_lag_of_a_claim_counts_from_its_due_time_or_its_creation(due: Any, created: Any, lags: list[int]):
    """P10.1: a run time in the past is no lag, and a damaged row has none."""
    claim = Claim("id", 1, "default", "shop:charge", 0, 0, 2, due, 100)
    payloads = {} if created is None else {"id": Payload("[[],{}]", None, None, None, None, None, created)}
    assert _lags(Claimed([claim], payloads), 1) == lags


def test_lags_of_a_large_claim_are_those_of_every_so_many():
    """P10.1: each of them then counts for as many claims."""
    claims = [Claim(str(due), 1, "default", "shop:charge", 0, 0, 2, due, 100) for due in range(10)]
    assert _lags(Claimed(claims, {}), 4) == [100, 96, 92]
