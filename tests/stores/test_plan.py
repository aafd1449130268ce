"""Plans as generators: what a step promises is checked where the plan runs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windlass.domain.clock import SystemClock
from windlass.stores import migrate
from windlass.stores.caller_transactions.runner import CallerPlanRunner
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import BrokenPromiseError, Plan, Step, check_promises

PLAIN, ALONE, READS = Step("a"), Step("a", alone=True), Step("a", autocommit=True)


@pytest.mark.parametrize(
    ("first", "step", "following"),
    [(PLAIN, PLAIN, PLAIN), (PLAIN, PLAIN, ALONE), (PLAIN, READS, PLAIN), (READS, READS, READS)],
)
def test_steps_that_keep_every_promise_may_follow(first: Step, step: Step, following: Step):
    check_promises(first, step, following)


@pytest.mark.parametrize(
    ("first", "step", "following"),
    [(ALONE, ALONE, PLAIN), (ALONE, ALONE, ALONE), (PLAIN, ALONE, PLAIN), (READS, READS, PLAIN)],
)
def test_a_step_that_breaks_a_promise_is_refused(first: Step, step: Step, following: Step):
    with pytest.raises(BrokenPromiseError):
        check_promises(first, step, following)


def test_a_broken_promise_is_refused_in_the_transaction_of_a_caller(tmp_path: Path):
    """J1.6: nothing of the plan stays, and the caller's transaction goes on."""
    path = tmp_path / "jobs.db"
    database = open_database(f"sqlite:///{path}", SystemClock())
    migrate.migrate(database)

    def lying(dialect: Dialect) -> Plan[None]:
        del dialect
        yield Step("insert_queue", rows=[{"name": "new"}], alone=True)
        yield Step("list_queues")

    with closing(database), closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(BrokenPromiseError):
            CallerPlanRunner(database).run(connection, lying)
        assert connection.execute("SELECT count(*) FROM windlass_queue WHERE name = 'new'").fetchone() == (0,)
        connection.commit()
