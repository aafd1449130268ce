"""The heartbeat does not share connections with bodies."""

from functools import partial

import psycopg
import pytest

from tests.support.facts import now_of, one
from tests.support.waiting import until
from windlass import JobHandle, NodeSettings, Settings, Windlass
from windlass.stores.postgres.connections import MOST_CONNECTIONS
from windlass.stores.postgres.session import STATEMENT_TIMEOUT

BODIES = MOST_CONNECTIONS + 2
BUSY_HEART = Settings(node=NodeSettings(heartbeat_interval=0.1, missed_heartbeats=20))
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
BEATEN_AT = "SELECT heartbeat_at FROM windlass_node"
APPS: list[Windlass] = []


def ask_for(tag: str) -> int:
    """A body on a thread that asks the store for something."""
    return len(APPS[0].find(tag=tag))


@pytest.fixture
def app(pg_url: str, monkeypatch: pytest.MonkeyPatch) -> Windlass:
    application = Windlass(pg_url, settings=BUSY_HEART)
    application.migrate()
    monkeypatch.setattr(f"{__name__}.APPS", [application])
    return application


def has_beaten(url: str, since: int) -> bool:
    return bool(one(url, BEATEN_AT) > since)


def test_heartbeats_continue_while_bodies_on_threads_use_every_connection(app: Windlass, pg_url: str):
    """J7.2: a node whose bodies wait for the store is alive: no other node may recover its jobs."""
    ask = app.job(ask_for)
    with app.worker(concurrency=BODIES):
        with psycopg.connect(pg_url) as rival:
            rival.execute("LOCK TABLE windlass_job_tag IN ACCESS EXCLUSIVE MODE")
            handles: list[JobHandle[int]] = [ask.enqueue("t") for _ in range(BODIES)]
            until(lambda: one(pg_url, WAITING) == MOST_CONNECTIONS, "bodies to wait on every connection")
            for _ in range(3):
                before = one(pg_url, f"SELECT {now_of(pg_url)}")
                until(partial(has_beaten, pg_url, before), "the next beat", STATEMENT_TIMEOUT - 5)
        assert [handle.result(90) for handle in handles] == [0] * BODIES
    app.close()
