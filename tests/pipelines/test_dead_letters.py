"""Dead letters of executions, on every store: whichever way an execution fails, in the transaction that ends it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.facts import literal, one, rows
from windlass import (
    AlertRaised,
    DeadLetter,
    Event,
    ExecutionStatus,
    InvalidOptionError,
    JobDeadLettered,
    JobFailed,
    JobNotFoundError,
    NodeSettings,
    NonRetryable,
    RejectItem,
    Settings,
    Windlass,
)
from windlass.domain.clock import VirtualClock

RUN = 60.0
IMPATIENT = Settings(node=NodeSettings(crash_budget=0, recovery_interval=0.05, unknown_target_after=0))


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url, settings=IMPATIENT)
    application.migrate()
    yield application
    application.close()


def failing(app: Windlass, name: str = "shop", error: type[Exception] = ConnectionError, **options: Any) -> Any:
    """A pipeline whose second step fails."""
    shop = app.pipeline(name, version="1", retry_limit=0, **options)

    @shop.step
    def parse(number: int) -> int:
        return number

    @shop.step
    def charge(number: int) -> int:
        raise error(f"no answer for {number}")

    return shop


def refuse() -> None:
    raise ValueError("refused")


def letter_of(app: Windlass, run: Any) -> DeadLetter:
    """Have a worker end an execution, and give its dead letter."""
    with app.worker():
        assert run.join(RUN) is ExecutionStatus.DLQ
    return app.dead_letters.get(run.id)


def test_the_envelope_of_an_execution_has_every_field(app: Windlass):
    """P6.1: the same as that of jobs, with tenant, key, pipeline, step and definition of the execution."""
    shop = failing(app)
    run = shop.submit(7, key="seven", tenant="acme", correlation_id="c7")
    letter = letter_of(app, run)
    assert letter.envelope() == {
        "tenantId": "acme",
        "executionId": str(run.id),
        "executionKey": "seven",
        "transitionKey": f"{run.id}:1:1",
        "correlationId": "c7",
        "resourceType": "pipeline",
        "resourceName": "shop",
        "transport": app.database.dialect.name,
        "platform": "python",
        "terminalStatus": "DLQ",
        "createdAtEpochMs": letter.created_at_epoch_ms,
        "terminalReason": "retry_exhausted",
        "errorCode": "ConnectionError",
        "errorMessage": "ConnectionError: no answer for 7",
        "retryable": True,
        "retriesObserved": 0,
        "traceback": letter.traceback,
        "host": letter.host,
        "definitionHash": app.executions.get(run.id, "acme").definition_hash,
    }
    assert (str(letter.job_id), letter.step, letter.item) == (str(run.id), 1, None)
    assert "charge" in (letter.traceback or "")
    assert app.executions.get(run.id, "acme").transition_key == letter.transition_key


def test_retries_of_the_step_are_counted_not_those_of_the_execution(app: Windlass):
    """P6.1: a step that had retries before does not count; the transition key has the attempt of the failed one."""
    shop = app.pipeline("shop", version="1", retry_limit=2, retry_wait=0.01)
    called: list[str] = []

    @shop.step
    def unsteady(number: int) -> int:
        called.append("unsteady")
        if len(called) < 3:
            raise ConnectionError("later")
        return number

    @shop.step(retry_limit=1)
    def broken(number: int) -> int:
        raise ConnectionError("never")

    run = shop.submit(7)
    letter = letter_of(app, run)
    assert (letter.transition_key, letter.retries_observed) == (f"{run.id}:1:2", 1)


@pytest.mark.parametrize("error", ["direct", "cause", "group"])
def test_an_error_that_forbids_retries_is_recorded_however_deep_it_is(app: Windlass, error: str):
    """P4.1, P6.1: `non_retryable` at once, with the inner error."""
    shop = app.pipeline("shop", version="1", retry_limit=5)
    called: list[int] = []

    @shop.step
    def charge(number: int) -> int:
        called.append(number)
        inner = NonRetryable("card is closed")
        if error == "direct":
            raise inner
        if error == "cause":
            raise ValueError("outer") from inner
        raise ExceptionGroup("outer", [ValueError("other"), inner])

    letter = letter_of(app, shop.submit(7))
    assert (letter.terminal_reason, letter.error_code, letter.retryable) == ("non_retryable", "DoNotRetry", False)
    assert "card is closed" in letter.error_message
    assert called == [7]


def test_a_stored_input_that_no_longer_fits_is_a_poison_payload(app: Windlass, store_url: str):
    """P6.1: it fails outside of any step, so the letter names the step it was at."""
    run = failing(app).submit(7, key="seven", tenant="acme")
    rows(store_url, f"UPDATE windlass_job SET args = '[[1, 2], {{}}]' WHERE id = {literal(store_url, run.id)}")
    letter = letter_of(app, run)
    assert (letter.terminal_reason, letter.error_code) == ("poison_payload", "SerializationError")
    assert (letter.tenant_id, letter.execution_key, letter.resource_name) == ("acme", "seven", "shop")
    assert (letter.transition_key, letter.retries_observed) == (f"{run.id}:0:1", 0)
    assert app.executions.get(run.id, "acme").transition_key == letter.transition_key


def test_an_execution_that_no_node_knows_is_a_dead_letter(app: Windlass, store_url: str):
    """P6.1: `target_not_found`, found by a node without the pipeline; an alert is raised, and both are published."""
    run = failing(app).submit(7, tenant="acme")
    other = Windlass(store_url, settings=IMPATIENT)
    other.job(len)
    events: list[Any] = []
    other.on(Event)(events.append)
    with other.worker():
        assert other.executions.handle(run.id, "acme").join(RUN) is ExecutionStatus.DLQ
    letter = other.dead_letters.get(run.id)
    other.close()
    assert (letter.terminal_reason, letter.tenant_id, letter.step) == ("target_not_found", "acme", 0)
    assert [type(event) for event in events if str(getattr(event, "job_id", "")) == str(run.id)] == [
        JobFailed,
        JobDeadLettered,
        AlertRaised,
    ]


def test_an_execution_whose_process_died_too_often_is_a_dead_letter(app: Windlass, store_url: str):
    """P6.1: `worker_lost`, written by the node that recovers it, with the host that lost it."""
    run = failing(app).submit(7, tenant="acme")
    claimed = "UPDATE windlass_hot SET status = 'RUNNING', node = 'web-2-7-abcd', fence = 1, picked_at = 1"
    rows(store_url, f"{claimed} WHERE id = {literal(store_url, run.id)}")
    letter = letter_of(app, run)
    assert (letter.terminal_reason, letter.host) == ("worker_lost", "web-2")
    assert (letter.tenant_id, letter.transition_key) == ("acme", f"{run.id}:0:1")


def test_too_many_rejects_are_a_reason_of_their_own(app: Windlass):
    """P5.1, P6.1: `reject_limit`, which says to look at the rejects first."""
    shop = app.pipeline("shop", version="1", max_rejected=1)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        raise RejectItem("no price")

    letter = letter_of(app, shop.submit(3))
    assert (letter.terminal_reason, letter.error_code, letter.retryable) == ("reject_limit", "RejectLimitError", False)
    assert "windlass reject groups" in letter.first_action
    assert app.dead_letters.find(reason="reject_limit").items == [letter]


def test_jobs_of_items_have_neither_letter_nor_alert_nor_events(app: Windlass, store_url: str):
    """P6.1: the item ends its execution, whose letter names it; there is one letter."""
    shop = app.pipeline("shop", version="1", retry_limit=0, buffer=10)
    events: list[Any] = []
    app.on(Event)(events.append)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        if number == 177:
            raise ValueError("no")
        return number

    run = shop.submit(300)
    letter = letter_of(app, run)
    assert (letter.transition_key, letter.step, letter.item) == (f"{run.id}:1:1:177", 1, "177")
    assert one(store_url, "SELECT count(*) FROM windlass_dead_letter") == 1
    (alert,) = app.alerts.find()
    assert (alert.target, alert.count, alert.error_hash) == ("shop", 1, letter.fingerprint)
    assert {str(event.job_id) for event in events if isinstance(event, JobFailed | JobDeadLettered)} == {str(run.id)}
    assert not [event for event in events if getattr(event, "target", "").endswith("/items")]


def test_events_have_the_fingerprint_of_the_letter(app: Windlass):
    """P6.1: `JobDeadLettered` is published for executions too."""
    events: list[Any] = []
    app.on(Event)(events.append)
    letter = letter_of(app, failing(app).submit(7))
    (dead,) = (event for event in events if isinstance(event, JobDeadLettered))
    (alert,) = (event for event in events if isinstance(event, AlertRaised))
    assert dead.fingerprint == alert.error_hash == letter.fingerprint


def test_an_execution_declared_without_letters_fails_without_one(app: Windlass):
    """P6.1: `dlq=False` ends FAILED; nothing is counted, and it can be re-driven by its id."""
    events: list[Any] = []
    app.on(Event)(events.append)
    run, kept = failing(app, "silent", dlq=False).submit(7), failing(app, "loud").submit(8)
    with app.worker():
        assert run.join(RUN) is ExecutionStatus.FAILED
        assert kept.join(RUN) is ExecutionStatus.DLQ
    assert [str(letter.job_id) for letter in app.dead_letters.find()] == [str(kept.id)]
    assert [group.target for group in app.dead_letters.groups()] == ["loud"]
    assert [str(event.job_id) for event in events if isinstance(event, JobDeadLettered)] == [str(kept.id)]
    app.executions.redrive(run.id)
    with app.worker():
        assert run.join(RUN) is ExecutionStatus.FAILED
    assert len(app.dead_letters.find()) == 1


def test_kinds_are_found_apart_and_together(app: Windlass):
    """P6.1: `find()` without a kind gives both; so do groups, re-drives and purges."""
    runs = [failing(app, name).submit(7) for name in ("shop", "mail")]
    job = app.job(refuse).enqueue()
    with app.worker():
        for handle in (*runs, job):
            handle.join(RUN)
    of_runs = {str(run.id) for run in runs}

    def found(**filters: Any) -> set[str]:
        return {str(letter.job_id) for letter in app.dead_letters.find(**filters)}

    assert found() == {str(job.id), *of_runs}
    assert (found(kind="job"), found(kind="execution")) == ({str(job.id)}, of_runs)
    assert found(kind="execution", target="shop") == {str(runs[0].id)}
    assert found(kind="job", target="shop") == set()
    assert found(target="mail", error_class="ConnectionError") == {str(runs[1].id)}
    assert {group.target for group in app.dead_letters.groups("execution")} == {"shop", "mail"}
    (group,) = app.dead_letters.groups(kind="job")
    assert (group.target, group.count) == (app.get(job.id).target, 1)
    assert len(app.dead_letters.groups()) == 3
    assert {str(one) for one in app.dead_letters.redrive(dry_run=True, kind="execution").ids} == of_runs
    for refused in (app.dead_letters.find, app.dead_letters.groups, app.dead_letters.redrive):
        with pytest.raises(InvalidOptionError, match="did you mean 'execution'"):
            refused(kind="executions")
    with pytest.raises(InvalidOptionError, match="did you mean 'job'"):
        app.dead_letters.purge(1, kind="jobs")


def test_steps_and_pipelines_are_counted_apart_items_and_tenants_together(app: Windlass):
    """P6.1: the fingerprint counts pipeline and step, not the execution."""
    shop = app.pipeline("shop", version="1", retry_limit=0)

    @shop.step
    def parse(number: int) -> int:
        if number == 0:
            raise ValueError("no")
        return number

    @shop.step
    def check(number: int) -> int:
        raise ValueError("no")

    runs = [shop.submit(number, tenant=tenant) for number, tenant in ((0, "a"), (1, "a"), (2, "b"))]
    with app.worker():
        for run in runs:
            run.join(RUN)
    assert [(group.target, group.count) for group in app.dead_letters.groups()] == [("shop", 2), ("shop", 1)]


def test_a_purge_deletes_executions_with_all_their_data(store_url: str):
    """P6.1, P3.1: of the chosen kind and age; the key is free again."""
    clock = VirtualClock()
    app = Windlass(store_url, clock=clock)
    app.migrate()
    shop, events = failing(app), app.job(refuse)
    with app.worker():
        run, job = shop.submit(7, key="seven"), events.enqueue()
        assert (run.join(RUN), job.join(RUN).value) == (ExecutionStatus.DLQ, "FAILED")
    clock.advance(100)
    assert (app.dead_letters.purge(200, kind="execution"), app.dead_letters.purge(50, kind="execution")) == (0, 1)
    assert [letter.job_id for letter in app.dead_letters.find()] == [job.id]
    assert len(app.alerts.find()) == 2
    for table in ("execution", "transition", "item", "part"):
        assert one(store_url, f"SELECT count(*) FROM windlass_{table}") == 0
    with pytest.raises(JobNotFoundError):
        app.dead_letters.get(run.id)
    assert shop.submit(8, key="seven").duplicate is False
    assert (app.dead_letters.purge(50), len(app.alerts.find())) == (1, 0)
    app.close()
