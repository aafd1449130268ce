"""Executions started over from their dead letters, on every store."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.facts import one
from windlass import ExecutionStatus, InvalidOptionError, NotAuthorizedError, Windlass
from windlass.stores.plans import archive

RUN = 60.0

Redrive = Callable[[Windlass, Any], object]


def by_bulk(app: Windlass, run: Any) -> object:
    done = app.dead_letters.redrive(kind="execution", note="bank is back")
    assert (done.selected, done.redriven, [str(one) for one in done.ids]) == (1, 1, [str(run.id)])
    return done


def by_retry(app: Windlass, run: Any) -> object:
    assert app.retry(run.id)
    return run


def by_id(app: Windlass, run: Any) -> object:
    return app.executions.redrive(run.id)


each_verb = pytest.mark.parametrize("redrive", [by_bulk, by_retry, by_id])


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def ends(app: Windlass, run: Any) -> ExecutionStatus:
    with app.worker():
        return run.join(RUN)


@each_verb
def test_an_execution_continues_at_the_failed_step(app: Windlass, redrive: Redrive):
    """P6.3: same id, cursor kept, version + 1 with one row in its log; steps before it are not called again."""
    shop = app.pipeline("shop", version="1", retry_limit=1, retry_wait=0.01)
    called: Counter[str] = Counter()
    broken = [True]

    @shop.step
    def parse(number: int) -> int:
        called["parse"] += 1
        return number + 1

    @shop.step
    def charge(number: int) -> int:
        called["charge"] += 1
        if broken:
            raise ConnectionError("no answer")
        return number * 2

    run = shop.submit(7, key="seven")
    assert ends(app, run) is ExecutionStatus.DLQ
    before = app.executions.get(run.id)
    redrive(app, run)
    after = app.executions.get(run.id)
    assert (after.status, after.cursor, after.attempt) == (ExecutionStatus.QUEUED, 1, 1)
    assert (before.cursor, after.row_version) == (1, before.row_version + 1)
    assert (after.error_code, after.error_message) == (None, None)
    assert [row.kind for row in app.executions.history(run.id)].count("redriven") == 1
    assert app.executions.history(run.id)[-1].version == after.row_version
    assert (app.dead_letters.find().items, app.dead_letters.groups()) == ([], [])
    broken.clear()
    assert ends(app, run) is ExecutionStatus.SUCCEEDED
    assert (run.result(0), called) == (16, {"parse": 1, "charge": 3})
    assert shop.submit(7, key="seven").duplicate is True


@each_verb
@pytest.mark.parametrize("count", [6, 300], ids=["few items", "items in parts"])
def test_only_unfinished_items_are_called_again(app: Windlass, redrive: Redrive, count: int):
    """P6.3: failed items are ready again, finished ones are not; whether they run in parts or not."""
    shop = app.pipeline("shop", version="1", retry_limit=0, buffer=10)
    called: Counter[int] = Counter()
    broken = {4}

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        called[-1] += 1
        yield from range(number)

    @shop.step(concurrency=1)
    def price(number: int) -> int:
        called[number] += 1
        if number in broken:
            raise ValueError("no price")
        return number

    run = shop.submit(count)
    assert ends(app, run) is ExecutionStatus.DLQ
    done = [number for number in range(count) if called[number]]
    assert 4 in done
    redrive(app, run)
    broken.clear()
    assert ends(app, run) is ExecutionStatus.SUCCEEDED
    assert run.result(0) == list(range(count))
    assert called.pop(-1) <= 2  # an expansion that the failure has cut off is run again, for the items it had not given
    assert called == {**dict.fromkeys(range(count), 1), 4: 2}


def test_the_second_failure_creates_the_letter_again(app: Windlass):
    """P6.2, P6.3: counted and grouped once more; the alert of the hour counts it."""
    shop = app.pipeline("shop", version="1", retry_limit=0)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def price(number: int) -> int:
        if number == 2:
            raise ValueError("no price")
        return number

    run = shop.submit(4, tenant="acme", key="four")
    assert ends(app, run) is ExecutionStatus.DLQ
    first = app.dead_letters.get(run.id)
    by_bulk(app, run)
    assert len(app.dead_letters.find()) == 0
    assert ends(app, run) is ExecutionStatus.DLQ
    second = app.dead_letters.get(run.id)
    assert (second.transition_key, second.tenant_id, second.execution_key) == (f"{run.id}:1:1:2", "acme", "four")
    assert (second.fingerprint, second.definition_hash) == (first.fingerprint, first.definition_hash)
    assert second.created_at_epoch_ms >= first.created_at_epoch_ms
    assert [(group.count, group.target) for group in app.dead_letters.groups()] == [(1, "shop")]
    assert [alert.count for alert in app.alerts.find()] == [2]


def test_bulk_redrives_take_jobs_and_executions_that_fit(app: Windlass):
    """P6.3: bounded by limit, the first to die first, and by any filter; what does not fit stays."""
    shop, mail = (app.pipeline(name, version="1", retry_limit=0) for name in ("shop", "mail"))
    broken = [True]

    def check(number: int) -> int:
        if broken:
            raise ConnectionError("no answer")
        return number

    shop.step(check)
    mail.step(check)
    runs = [shop.submit(number) for number in range(5)]
    other = mail.submit(0)
    with app.worker():
        for run in (*runs, other):
            assert run.join(RUN) is ExecutionStatus.DLQ
    assert app.dead_letters.redrive(target="shop", kind="job").selected == 0
    died = [letter.job_id for letter in app.dead_letters.find(target="shop")][::-1]
    first = app.dead_letters.redrive(2, target="shop", kind="execution")
    assert [str(one) for one in first.ids] == [str(one) for one in died[:2]]
    (group,) = app.dead_letters.groups(target="shop")
    rest = app.dead_letters.redrive(fingerprint=group.fingerprint)
    assert (group.count, rest.redriven) == (3, 3)
    broken.clear()
    with app.worker():
        assert [run.result(RUN) for run in runs] == list(range(5))
    assert [str(letter.job_id) for letter in app.dead_letters.find()] == [str(other.id)]


def test_a_bulk_redrive_is_in_the_audit_log_with_its_kind(app: Windlass, store_url: str):
    """P6.3: principal, action and reason."""
    assert app.dead_letters.redrive(kind="execution", note="mended").selected == 0
    shop = app.pipeline("shop", version="1", retry_limit=0)

    @shop.step
    def check(number: int) -> int:
        raise ConnectionError("no answer")

    run = shop.submit(1)
    assert ends(app, run) is ExecutionStatus.DLQ
    by_bulk(app, run)
    detail = one(store_url, "SELECT detail FROM windlass_audit WHERE action = 'dead_letters.redrive'")
    assert '"kind":"execution"' in str(detail).replace(" ", "").replace("'", '"')
    assert "bank is back" in str(detail)


def test_an_archived_execution_is_found_and_redriven(app: Windlass, store_url: str):
    """P6.3: its letter stays when its job is archived, and a re-drive brings the job back."""
    shop = app.pipeline("shop", version="1", retry_limit=0)
    broken = [True]

    @shop.step
    def check(number: int) -> int:
        if broken:
            raise ConnectionError("no answer")
        return number

    run = shop.submit(7, tenant="acme", key="seven")
    assert ends(app, run) is ExecutionStatus.DLQ
    app.database.run(archive.move, [str(run.id)])
    assert one(store_url, "SELECT count(*) FROM windlass_done") == 0
    (letter,) = app.dead_letters.find(kind="execution")
    assert (letter.tenant_id, letter.execution_key, letter.resource_name) == ("acme", "seven", "shop")
    by_bulk(app, run)
    broken.clear()
    assert ends(app, run) is ExecutionStatus.SUCCEEDED
    assert run.result(0) == 7


def test_a_plan_names_the_steps_that_are_called_again(app: Windlass, store_url: str):
    """P6.3: with effect keys and tries so far; where other steps are declared, it is refused."""
    shop = app.pipeline("shop", version="1", retry_limit=1, retry_wait=0.01)

    @shop.step
    def parse(number: int) -> int:
        return number

    @shop.step
    def charge(number: int) -> int:
        raise ConnectionError("no answer")

    @shop.step
    def report(number: int) -> int:
        return number

    run = shop.submit(1, tenant="acme")
    assert ends(app, run) is ExecutionStatus.DLQ
    plan = app.executions.plan_redrive(run.id)
    assert (plan.status, plan.row_version) == ("DLQ", app.executions.get(run.id, "acme").row_version)
    assert [(step.index, step.name, step.effect_key, step.attempts) for step in plan.steps] == [
        (1, "charge", f"{run.id}:1", 2),
        (2, "report", f"{run.id}:2", 0),
    ]
    other = Windlass(store_url)
    other.pipeline("shop", version="1").step(parse)
    with pytest.raises(InvalidOptionError, match="declared here with other steps"):
        other.executions.plan_redrive(run.id)
    other.close()


def test_a_plan_requires_the_right_to_read_the_execution(store_url: str):
    """P6.3: like every verb on one execution."""

    class DenyAll:
        def may(self, principal: object, action: str, job: object) -> bool:
            return False

    other = Windlass(store_url, authorizer=DenyAll())
    other.migrate()
    with pytest.raises(NotAuthorizedError):
        other.executions.plan_redrive("0198c0de-0000-7000-8000-000000000001")
    other.close()


@pytest.mark.parametrize("items", [False, True], ids=["single value", "items"])
@pytest.mark.parametrize(("reset", "calls"), [(True, 3), (False, 1)])
def test_attempts_are_kept_on_request(app: Windlass, items: bool, reset: bool, calls: int):
    """P6.3: `reset_attempts=False` leaves a step, or an item, what it had: one more try, and it is dead again."""
    shop = app.pipeline("shop", version="1", retry_limit=2, retry_wait=0.01)
    called: Counter[int] = Counter()

    if items:

        @shop.expand
        def lines(number: int) -> Iterator[int]:
            yield from range(number)

    @shop.step
    def price(number: int) -> int:
        called[number] += 1
        if number == 2:
            raise ValueError("no price")
        return number

    run = shop.submit(3 if items else 2)
    assert ends(app, run) is ExecutionStatus.DLQ
    assert called[2] == 3
    before = app.executions.get(run.id).row_version
    assert app.executions.redrive(run.id, reset_attempts=reset).row_version == before + 1
    assert [row.kind for row in app.executions.history(run.id)].count("redriven") == 1
    assert ends(app, run) is ExecutionStatus.DLQ
    assert called[2] == 3 + calls
