"""`retry_on` and `give_up_on`: the errors after which a job is retried."""

import pytest

from tests.engine import jobs
from tests.engine.apps import Apps, Shop, settled
from windlass import Backoff, JobStatus, Windlass

FAILED_AT_ONCE = (JobStatus.FAILED, "non_retryable", 1)
RETRIED = (JobStatus.FAILED, "retry_exhausted", 3)

ORDERS = """
from windlass import Windlass

app = Windlass({url!r})


class OrderError(Exception):
    def __init__(self, order: int, why: str) -> None:
        super().__init__(f"order {{order}}: {{why}}")


class SoldOut(OrderError): ...


@app.job(max_retries=2, give_up_on=SoldOut, executor={executor!r})
def reserve(order: int) -> None:
    raise SoldOut(order, "nothing left")


@app.job(max_retries=2, retry_on=(OrderError,), executor={executor!r})
def buy(order: int) -> None:
    raise SoldOut(order, "nothing left")
"""


def test_only_errors_named_by_retry_on_are_retried(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J5.1: given on the decorator, replaced and taken back by `using`; the log says which rule ended the job."""
    fail = app.job(max_retries=2, retry_on=(ConnectionError, TimeoutError))(jobs.raise_it)
    with app.worker():
        listed = settled(app, fail.using(retry_on=[ValueError]).enqueue("plain").id)
        other = settled(app, fail.enqueue("plain").id)
        taken_back = settled(app, fail.using(retry_on=None).enqueue("plain").id)
    assert [(job.status, job.reason, job.attempts) for job in (listed, other, taken_back)] == [
        RETRIED,
        FAILED_AT_ONCE,
        RETRIED,
    ]
    assert "(its class is not in retry_on)" in caplog.text


def test_an_error_named_by_give_up_on_is_not_retried(app: Windlass):
    """J5.1: whatever retry_on says."""
    fail = app.job(max_retries=2, backoff=Backoff.fixed(60), retry_on=Exception, give_up_on=ValueError)(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("plain").id)
    assert (job.status, job.reason, job.attempts) == FAILED_AT_ONCE


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_classes_of_the_program_are_compared_by_name(shop: Shop, sqlite_url: str, executor: str):
    """J5.1: by class and base, also where another process raised it and another class stands in for it."""
    module = shop.load(ORDERS.format(url=sqlite_url, executor=executor))
    with module.app.worker():
        given_up = settled(module.app, module.reserve.enqueue(7).id)
        retried = settled(module.app, module.buy.enqueue(7).id)
    module.app.close()
    assert (given_up.status, given_up.reason, given_up.attempts) == FAILED_AT_ONCE
    assert (retried.status, retried.reason, retried.attempts) == RETRIED


def test_a_worker_without_the_class_compares_its_name(apps: Apps):
    """J5.1: what a stored name leads to is not looked for, and no code is loaded for it."""
    gone = type("GoneError", (Exception,), {"__module__": "no.such.module"})
    app = apps()
    fail = app.job(max_retries=2, retry_on=gone)(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("plain").id)
    assert (job.status, job.reason, job.attempts) == FAILED_AT_ONCE
