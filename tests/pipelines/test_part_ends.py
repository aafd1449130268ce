"""The end of a part while its execution parks, as two transactions at once: on PostgreSQL, where there can be two."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.crash.programs.broken_pipelines import BUILDS
from tests.support.facts import rows
from tests.support.pipeline_invariants import broken_rules
from tests.support.waiting import until
from windlass import Windlass
from windlass.domain.ended import Effects, Ended
from windlass.domain.identity import new_job_id
from windlass.domain.states import Move
from windlass.pipelines import follow_ups
from windlass.pipelines.cargo import PartEnded
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import executions
from windlass.stores.plans.items import Release

WAITS = "V5 an open execution waits for something"
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def app(pg_url: str) -> Iterator[Windlass]:
    application = Windlass(pg_url)
    application.migrate()
    yield application
    application.close()


def end_of_its_part(app: Windlass, url: str, execution: str) -> Any:
    """A plan: the last part of an execution ends, whose claim is about to park."""
    job = new_job_id()
    rows(url, f"INSERT INTO windlass_part VALUES ('{execution}', 1, 1, '10', '11', '{job}', NULL)")
    rows(url, f"UPDATE windlass_hot SET status = 'RUNNING', due = NULL WHERE id = '{execution}'")
    release = Release(execution, 1, 1, 8, None)  # type: ignore[arg-type]  # no part is left to be given a job
    ended = Ended(job, "pipeline/shop@1#0/items", "default", 0, Move.SUCCEED, cargo=PartEnded(release))
    (plan,) = (one.plan for one in follow_ups.follow_ups() if Move.SUCCEED in one.moves and one.concerns(ended))

    def end(dialect: Dialect) -> Plan[Effects]:
        return (yield from plan(dialect, [ended]))

    return lambda: app.database.run(end)


def parks_while_its_part_ends(app: Windlass, url: str, *, blocks: bool) -> None:
    """Park an execution, and end its last part before that is committed."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def same(number: int) -> int:
        return number

    execution = str(shop.submit(1).id)
    end = threading.Thread(target=end_of_its_part(app, url, execution))
    with psycopg.connect(url) as main:
        main.execute(f"UPDATE windlass_hot SET status = 'PENDING' WHERE id = '{execution}'".encode())
        end.start()
        if blocks:
            until(lambda: rows(url, BLOCKED)[0][0], "the end of the part to wait for the execution")
        else:
            end.join(60)
        main.commit()
    end.join(60)
    assert not end.is_alive()


def test_the_end_of_the_last_part_wakes_an_execution_that_parks_at_this_moment(app: Windlass, pg_url: str):
    """P9.C2, P2.3: it waits for the execution's row, and looks at its parts after that."""
    parks_while_its_part_ends(app, pg_url, blocks=True)
    assert WAITS not in broken_rules(pg_url)
    assert rows(pg_url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == [(0,)]


def test_a_build_that_does_not_lock_the_execution_is_found(app: Windlass, pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """P9.C2, P2.3: the execution waits for ever."""
    monkeypatch.setattr(executions, "lock_mains", executions.lock_mains)
    BUILDS["no lock"]()
    parks_while_its_part_ends(app, pg_url, blocks=False)
    assert WAITS in broken_rules(pg_url)
