"""What became of re-driven dead letters: how many have succeeded, failed again, and are close to it."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.engine.apps import LONG, Apps
from windlass import Backoff, ExecutionStatus, InvalidOptionError, JobStatus, Redrive, Windlass
from windlass.client.redrive_order import Order
from windlass.client.redrive_totals import MOST_LOOKED_AT, RedriveTotals
from windlass.domain.clock import VirtualClock
from windlass.stores.ending import MovedJobs
from windlass.stores.plans.redriven_jobs import RedrivenJobs, RetriedJob
from windlass.stores.plans.redrives import RedriveBatch
from windlass.stores.plans.triage import LetterFilters
from windlass.testing import drain

WAIT = 60.0
BROKEN: set[int] = set()


def deliver(number: int) -> str:
    if number in BROKEN:
        raise ConnectionError("no answer")
    return f"delivered {number}"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(apps: Apps, clock: VirtualClock) -> Windlass:
    """An application by a clock that stands still."""
    return apps(clock=clock)


@pytest.fixture(autouse=True)
def _reset_failures() -> Iterator[None]:
    yield
    BROKEN.clear()


def numbers(done: Redrive) -> tuple[int, int, int, float | None]:
    return done.succeeded, done.failed_again, done.unfinished, done.saturation


def test_a_redrive_counts_the_outcomes_of_its_jobs(app: Windlass):
    """P10.2, J5.7: succeeded, failed again, not ended yet, as of the last look."""
    job = app.job(deliver)
    BROKEN.update(range(3))
    app.enqueue_many([job.bind(number) for number in range(3)])
    assert drain(app).failed == 3
    BROKEN.discard(0)
    BROKEN.discard(1)
    done = app.dead_letters.redrive(on_progress=lambda _: drain(app))
    assert numbers(done) == (2, 1, 0, None)
    assert app.dead_letters.redrive().unfinished == 1


def test_saturation_of_jobs_is_the_share_of_retries_used(app: Windlass, clock: VirtualClock):
    """P10.1, P10.2: attempt / limit of what waits for a retry; of jobs that have none there is nothing to say."""
    job = app.job(max_retries=4, backoff=Backoff.fixed(WAIT))(deliver)
    other = app.job(name="other")(refuse)
    BROKEN.update((1, 2))
    handles = app.enqueue_many([job.bind(1), job.bind(2), other.bind(9)])
    for _ in range(5):
        drain(app)
        clock.advance(WAIT)
    assert {handle.status() for handle in handles} == {JobStatus.FAILED}

    def run_some(so_far: Redrive) -> None:
        drain(app)
        if so_far.redriven == 2:  # the one without retries comes first, and the next one gets two attempts
            clock.advance(WAIT)

    done = app.dead_letters.redrive(rate=1, on_progress=run_some)
    assert (done.redriven, done.failed_again, done.unfinished) == (3, 1, 2)
    assert done.saturation == pytest.approx((2 / 4 + 1 / 4) / 2)


def refuse(number: int) -> None:
    raise ConnectionError(f"{number}: no answer")


def test_saturation_of_executions_counts_steps_and_items(app: Windlass, clock: VirtualClock):
    """P10.1: of the step that is tried again, or of items of their parts; by the limits of the declaration."""
    lines = app.pipeline("lines", retry_limit=2, retry_wait=WAIT, max_backoff=WAIT, jitter=False)
    broken = [True]

    @lines.step
    def parse(number: int) -> int:
        if number == 1 and broken:
            raise ConnectionError("no catalogue")
        return number

    @lines.expand(buffer=2)
    def each(number: int) -> Iterator[int]:
        yield from range(6)

    @lines.step(retry_limit=4)
    def price(line: int) -> int:
        if line in (2, 3) and broken:
            raise ConnectionError("no price")
        return line

    runs = lines.submit_many([1, 2])
    for _ in range(6):
        drain(app)
        clock.advance(WAIT)
    assert {run.status() for run in runs} == {ExecutionStatus.DLQ}
    done = app.dead_letters.redrive(kind="execution", on_progress=lambda _: drain(app))
    assert (done.redriven, done.unfinished, done.failed_again) == (2, 2, 0)
    assert done.saturation == pytest.approx((1 / 2 + 1 / 4 + 1 / 4) / 3)
    broken.clear()
    clock.advance(WAIT)
    drain(app)
    assert {run.status() for run in runs} == {ExecutionStatus.SUCCEEDED}


def test_steps_that_are_not_declared_here_have_no_saturation(app: Windlass, apps: Apps, clock: VirtualClock):
    """P10.2: their limits are not known; the rest is."""
    mail = app.pipeline("mail", retry_limit=1, retry_wait=WAIT, jitter=False)

    @mail.step
    def send(number: int) -> None:
        raise ConnectionError("no answer")

    run = mail.submit(1)
    for _ in range(3):
        drain(app)
        clock.advance(WAIT)
    assert run.status() is ExecutionStatus.DLQ
    done = apps(clock=clock).dead_letters.redrive(on_progress=lambda _: drain(app))
    assert numbers(done) == (0, 0, 1, None)


def test_a_redrive_waits_until_all_have_ended(apps: Apps):
    """P10.2: with `wait`; the last report has the outcome of each."""
    app = apps()
    job = app.job(deliver)
    BROKEN.update(range(4))
    handles = app.enqueue_many([job.bind(number) for number in range(4)])
    reports: list[Redrive] = []
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
        BROKEN.clear()
        BROKEN.add(3)
        done = app.dead_letters.redrive(wait=True, on_progress=reports.append)
    assert numbers(done) == (3, 1, 0, None)
    assert (reports[-1], done.stopped) == (done, "")


def test_waiting_ends_when_too_many_have_failed_again(apps: Apps):
    """P10.2: the stop ratio, also after the last batch."""
    app = apps()
    job = app.job(deliver)
    BROKEN.update(range(20))
    app.enqueue_many([job.bind(number) for number in range(20)])
    drain(app)
    late = app.job(name="late")(deliver).using(delay=3600).enqueue(99)
    done = app.dead_letters.redrive(wait=True, on_progress=lambda _: drain(app))
    assert (done.failed_again, done.stopped) == (20, "20 of the 20 that have ended since failed again, more than 50%")
    assert late.status() is JobStatus.PENDING


def test_hand_offs_that_were_suppressed_meanwhile_are_counted(app: Windlass):
    """P10.2, P7.2: what a re-drive publishes again is dropped by its key."""
    shop = app.pipeline("shop", retry_limit=0)

    @shop.step
    def sell(number: int) -> str:
        if number in BROKEN:
            raise ConnectionError("no answer")
        return "one invoice"

    shop.publish("invoices", key=str)
    app.pipeline("billing", subscribe="invoices").step(name="bill")(str.upper)
    BROKEN.add(2)
    for number in (0, 1, 2):
        shop.submit(number)
    drain(app)
    assert len(app.executions.find(pipeline="billing").items) == 1
    BROKEN.clear()
    done = app.dead_letters.redrive(on_progress=lambda _: drain(app))
    assert (done.succeeded, done.suppressed) == (1, 1)


def test_the_jobs_that_were_checked_longest_ago_are_checked_next():
    """P10.2: a thousand that wait for their retries do not hide what became of the others."""
    ids = [f"0198c0de-0000-7000-8000-{number:012}" for number in range(MOST_LOOKED_AT + 2)]
    totals = RedriveTotals(Order(LetterFilters(), 10_000, None, False, None, ""), lambda *_: None)
    totals.add(RedriveBatch(ids, MovedJobs([]), {}, None))
    totals._running.update(dict.fromkeys(ids))
    looked = totals.running
    assert looked == ids[:MOST_LOOKED_AT]
    waiting = dict.fromkeys(looked[1:], "PENDING")
    totals.look_at(looked, RedrivenJobs(waiting, [RetriedJob(2, "{broken"), RetriedJob(9, '{"max_retries": 4}')], []))
    assert totals.running[:3] == [*ids[MOST_LOOKED_AT:], ids[1]]
    found = totals.result()
    assert (found.unfinished, found.saturation) == (MOST_LOOKED_AT + 1, 1.0), "the first was deleted meanwhile"
    assert UUID(ids[0]) not in found.ids


def test_wait_must_be_true_or_false(app: Windlass):
    """api.md, Errors."""
    with pytest.raises(InvalidOptionError, match=r"wait must be True or False, got 5"):
        app.dead_letters.redrive(wait=5)  # type: ignore[arg-type]
