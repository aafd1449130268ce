"""What publications cost: nothing for a pipeline that has none, and as many statements for one item as for many."""

from collections.abc import Iterator

import pytest

from tests.stores.recording import recorded, statements
from windlass.domain.clock import VirtualClock
from windlass.domain.ended import Ended
from windlass.domain.execution import LogRow, NewExecution
from windlass.domain.identity import new_job_id
from windlass.domain.states import Move
from windlass.pipelines.cargo import Finished
from windlass.pipelines.follow_ups import follow_ups
from windlass.pipelines.subscribers import Subscribers
from windlass.stores.database import Database
from windlass.stores.ending import end
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.stores.plans import execution_submissions, handoff_backlog
from windlass.stores.plans.execution_submissions import NewSubmission
from windlass.stores.plans.handoffs import PublishedItems
from windlass.testing.contract.publications import batch, billing, item
from windlass.testing.contract.workbench import new_job

TARGET = "pipeline/shop@1#hash"
PUBLICATION = 9
"""The subscribers, the rows, the keys of executions, executions, up to three of jobs, their logs, the counts."""


@pytest.fixture
def database(clean_pg_url: str, clock: VirtualClock) -> Iterator[Database]:
    opened = open_database(clean_pg_url, clock)
    yield opened
    opened.close()


def steps_of_success(database: Database, *outgoing: PublishedItems) -> list[Step]:
    """The statements that follow the success of an execution."""
    execution = new_job_id()
    row = NewExecution(execution, "default", "shop", "1", "hash", None, "input", 1)
    submission = NewSubmission(row, new_job(id=execution, target=TARGET))
    database.run(execution_submissions.submit, [submission], ["default"])
    cargo = Finished(LogRow("ended", 0, 1), outgoing=outgoing)
    job = Ended(execution, TARGET, "default", 2, Move.SUCCEED, cargo=cargo)
    steps: list[Step] = []
    plan = recorded(steps, lambda dialect: end(dialect, [job], follow_ups({"default"}, Subscribers(lambda: ()))))
    database.run(plan)
    return steps


def test_an_execution_that_publishes_nothing_costs_no_statement_for_it(database: Database):
    """P7.1: its end is the row and its log, as before."""
    assert [step.name for step in steps_of_success(database)] == ["end_executions", "insert_transitions"]


@pytest.mark.parametrize("count", [1, 3, 120, 500])
def test_the_statements_of_a_publication_do_not_grow_with_its_items(database: Database, count: int):
    """P7.1: all rows and admissions of one subscriber together."""
    steps = steps_of_success(database, batch([item(f"k{n}") for n in range(count)], billing()))
    assert 2 < statements(steps) <= 2 + PUBLICATION, [step.name for step in steps]


def test_a_look_at_the_backlog_costs_the_same_however_much_waits(database: Database):
    """P7.2: one statement for all subscriptions, and one or two for each that this process has."""
    counts = []
    for number in (1, 300):
        items = [item(f"{number}.{n}", refusal="no") for n in range(number)]
        steps_of_success(database, batch(items, billing()))
        steps: list[Step] = []
        place = ("invoices", "billing")
        found = database.read(recorded(steps, handoff_backlog.look), [place])
        assert found[place].due_us is not None
        counts.append(statements(steps))
    assert counts == [2, 2]
