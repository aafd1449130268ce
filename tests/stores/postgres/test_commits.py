"""Commits that go out along with the last statement of a plan: all of it stands or falls as with one of its own."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.support.facts import one, rows
from windlass.domain.clock import SystemClock
from windlass.stores.database import Database, StoreDataError
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import limits

REFUSED_AT_COMMIT = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE check_violation USING MESSAGE = 'refused at the commit'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON windlass_gate DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.in_use = 13) EXECUTE FUNCTION refuse();
ALTER TABLE windlass_gate ADD CONSTRAINT at_once CHECK (in_use <> 7)
"""
"""A count of 7 is refused by the statement, one of 13 by the commit."""
TIDY = """
ALTER TABLE windlass_gate DROP CONSTRAINT at_once;
DROP TRIGGER late ON windlass_gate;
DROP FUNCTION refuse
"""
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'commits'"


@pytest.fixture
async def database(clean_pg_url: str) -> AsyncIterator[Database]:
    """A store with a limited queue, whose gate refuses some counts."""
    opened = open_database(f"{clean_pg_url}?application_name=commits", SystemClock())
    opened.run(limits.limit_queue, "mail", limits.Limit(1_000, None, None))
    rows(clean_pg_url, REFUSED_AT_COMMIT)
    yield opened
    await opened.aclose_loop()
    opened.close()
    rows(clean_pg_url, TIDY)


def counting(
    dialect: Dialect, queue: str | None, change: int, races: Sequence[Exception] = (), gate: str = "queue:mail"
) -> Plan[int]:
    """Write a queue (if any), lose some races, and count at a gate, which is the last statement."""
    del dialect
    if queue is not None:
        yield Step("insert_queue", {"name": queue})
    for race in races:
        raise race
    count: int = yield Step("count_more", {"name": gate, "change": change}, final=True)
    return count


def seen(url: str) -> tuple[int, set[str]]:
    """What another session sees: the gate's count, and the queues beside its own."""
    names = {name for (name,) in rows(url, "SELECT name FROM windlass_queue")} - {"mail"}
    return one(url, "SELECT in_use FROM windlass_gate"), names


async def test_the_commit_that_goes_along_has_happened_when_the_answer_is_there(database: Database, clean_pg_url: str):
    """J2.1: the answer is the statement's own, and what was written before it is committed with it."""
    for number in range(1, 4):  # first without, then with, a prepared statement
        assert await database.arun(counting, f"q{number}", 1) == 1
        assert seen(clean_pg_url) == (number, {f"q{n}" for n in range(1, number + 1)})
    assert await database.arun(counting, "alone", 0) == 1


@pytest.mark.parametrize(("change", "why"), [(7, "at_once"), (13, "refused at the commit")])
async def test_a_failed_statement_or_commit_stores_nothing_and_keeps_the_connection_usable(
    database: Database, clean_pg_url: str, change: int, why: str
):
    """J2.1, J7.8: also one that only the commit can find; the next plan uses the same session."""
    for _ in range(3):
        with pytest.raises(StoreDataError, match=why):
            await database.arun(counting, "lost", change)
        assert seen(clean_pg_url) == (0, set())
    assert await database.arun(counting, "kept", 1) == 1
    assert seen(clean_pg_url) == (1, {"kept"})
    assert one(clean_pg_url, SESSIONS) == 2, "one for the thread that made the limit, one for the loop"


async def test_a_plan_that_fails_before_its_last_statement_commits_with_none_that_follows(
    database: Database, clean_pg_url: str
):
    """J2.1: whatever the plan before it had in mind for its commit, the next one begins and ends its own."""
    with pytest.raises(ValueError, match="no"):
        await database.arun(counting, "lost", 1, [ValueError("no")])
    tries: list[Any] = []

    def racing(dialect: Dialect) -> Plan[int]:
        tries.append(len(tries))
        return counting(dialect, f"try-{len(tries)}", 1, [RestartPlanError()] if len(tries) < 3 else [])

    assert await database.arun(racing) == 1
    assert seen(clean_pg_url) == (1, {"try-3"})
    with pytest.raises(StoreDataError, match="NUL"):
        await database.arun(counting, None, 1, gate="nul \0")  # refused here, before anything is sent
    with pytest.raises(StoreDataError, match="at_once"):
        await database.arun(counting, "lost", 6)
    assert await database.arun(counting, "kept", 1) == 1
    assert seen(clean_pg_url) == (2, {"try-3", "kept"})
