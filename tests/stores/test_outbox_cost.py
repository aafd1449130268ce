"""What deliveries outside cost: nothing where there are none, and as many statements for one row as for many."""

from collections.abc import Iterator, Sequence

import pytest

from tests.stores.recording import recorded
from windlass import Windlass
from windlass.domain.clock import VirtualClock
from windlass.domain.execution_items import NewReject, OutboxReject
from windlass.domain.identity import new_job_id
from windlass.failure.dead_letters import DeadLetterFollowUp
from windlass.features import features_of
from windlass.pipelines.relay_feature import routes
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.stores.plans import outbox, rejects
from windlass.stores.plans.delivery_rows import Settlement
from windlass.stores.plans.outbox import OutboxRow

DESTINATION = "rejects of shop"


@pytest.fixture
def database(clean_pg_url: str, clock: VirtualClock) -> Iterator[Database]:
    opened = open_database(clean_pg_url, clock)
    yield opened
    opened.close()


def reject(number: int, *, fed: bool) -> NewReject:
    outgoing = OutboxReject(DESTINATION, None, "{}") if fed else None
    names = (new_job_id(), 0, str(number), new_job_id(), "default", "shop", "price", "mark", "ValueError")
    return NewReject(*names, "{}", None, None, outgoing=outgoing)


def steps_of(database: Database, some: Sequence[NewReject]) -> list[str]:
    steps: list[Step] = []
    database.run(recorded(steps, rejects.store), some)
    return [step.name for step in steps if step.name != "count_rejected"]


def test_rejects_without_an_outlet_cost_no_statement_for_it(database: Database):
    """P5.3."""
    assert steps_of(database, [reject(0, fed=False)]) == ["insert_rejects"]


@pytest.mark.parametrize("count", [1, 100])
def test_rejects_with_an_outlet_cost_one_statement_however_many_there_are(database: Database, count: int):
    """P5.3."""
    some = [reject(number, fed=True) for number in range(count)]
    assert steps_of(database, some) == ["insert_rejects", "insert_outbox"]
    assert steps_of(database, some) == ["insert_rejects"], "none of them is new"


def test_an_application_without_outlets_has_no_relay_and_no_follow_up_for_one():
    """P6.2, P7.1: nothing runs, and nothing is asked."""
    app = Windlass("sqlite://")
    shop = app.pipeline("shop", version="1")
    shop.step(name="same")(_same)
    assert app.parts.pipelines is not None
    assert routes(app.parts.pipelines) == []
    letters = next(one for one in features_of(app.parts) if one.name == "dead letters")
    follow = getattr(letters.follow_ups[0].plan, "__self__", None)
    assert isinstance(follow, DeadLetterFollowUp)
    assert follow._wake_relay is None
    app.close()


def _same(number: int) -> int:
    return number


@pytest.mark.parametrize("count", [3, 300])
def test_marking_costs_one_statement_for_each_kind_of_end(database: Database, count: int):
    """P7.1: however many deliveries there are, and only where the number of tries is still the one that was read."""
    rows = [OutboxRow("reject", f"r{number}", DESTINATION, "shop", "default", None, "{}") for number in range(count)]
    database.run(outbox.store, rows)
    due = database.run(outbox.due, DESTINATION, count)
    assert len(due) == count
    ends = [(None, None), ("away", 1_000_000), ("no", None)]
    given = [Settlement(row.id, 0, *ends[number % 3]) for number, row in enumerate(due)]
    steps: list[Step] = []
    assert database.run(recorded(steps, outbox.settle_rows), given) == count
    assert [step.name for step in steps] == ["forget_delivered", "postpone_outbox", "refuse_outbox"]
    assert database.run(outbox.settle_rows, given) == 0
    assert database.run(outbox.due, DESTINATION, count) == []
    (backlog,) = database.run(outbox.backlog)
    assert (backlog.destination, backlog.waiting, backlog.untried) == (DESTINATION, count // 3, 0)


def test_refused_rows_are_purged_when_their_retention_ends(database: Database):
    """P5.3: what waits stays."""
    names = (DESTINATION, "shop", "default", None, "{}")
    database.run(outbox.store, [OutboxRow("reject", "waits", *names), OutboxRow("reject", "refused", *names)])
    refused = next(row for row in database.run(outbox.due, DESTINATION, 10) if row.key == "refused")
    database.run(outbox.settle_rows, [Settlement(refused.id, 0, "no")])
    assert database.run(outbox.purge, 3_600_000_000, 10, (0, "")).jobs == 0
    assert database.run(outbox.purge, 0, 10, (0, "")).jobs == 1
    assert [row.key for row in database.run(outbox.due, DESTINATION, 10)] == ["waits"]
