"""Which jobs are behind which circuit, and how circuits, resources and their keys are seen on a job."""

from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, Apps, Shop
from tests.engine.gated_jobs import EuropeanService, PaymentService, PlainService, SepaService
from windlass import InvalidOptionError, Windlass, circuit_protected
from windlass.submission.target import Known

MARKED: list[tuple[Any, str | None]] = [
    (gated_jobs.marked, "gateway"),
    (gated_jobs.call_gateway, None),
    (PaymentService.charge, "gateway"),
    (PaymentService.rates, "gateway"),
    (PaymentService.default, "gateway"),
    (PaymentService.pay_out, "bank"),
    (EuropeanService.refund, "gateway"),
    (SepaService.default, "sepa"),
    (PlainService.charge, "gateway"),
    (PlainService.look, None),
]


@pytest.fixture
def allowing(apps: Apps) -> Windlass:
    return apps(allow=["tests.engine.gated_jobs"])


@pytest.mark.parametrize(("target", "circuit"), MARKED, ids=lambda value: getattr(value, "__qualname__", str(value)))
def test_functions_and_methods_are_behind_the_circuit_of_their_mark(
    allowing: Windlass, target: Any, circuit: str | None
):
    """J6.1: on a function, a method, or a class for every job on its methods; a method's own mark comes first."""
    handle = allowing.bind(target, 7).enqueue()
    assert allowing.get(handle.id).circuit == circuit


def test_registered_jobs_keep_their_mark_and_run(app: Windlass):
    """J6.1: whichever decorator comes first."""
    inside = app.job(gated_jobs.marked)
    outside = circuit_protected("bank")(app.job(jobs.add))
    with app.worker():
        first, second = inside.enqueue(1), outside.enqueue(1, 2)
        assert (first.result(timeout=LONG), second.result(timeout=LONG)) == (1, 3)
    assert [app.get(handle.id).circuit for handle in (first, second)] == ["gateway", "bank"]


def test_the_option_comes_before_the_mark(app: Windlass):
    """J6.1: `circuit=` of the job, and before that of the call."""
    job = app.job(circuit="bank")(gated_jobs.marked)
    assert app.get(job.enqueue(1).id).circuit == "bank"
    assert app.get(job.using(circuit="sepa").enqueue(1).id).circuit == "sepa"
    assert app.get(job.using(circuit=None).enqueue(1).id).circuit == "gateway"


def test_a_bad_name_is_refused_where_it_is_written():
    with pytest.raises(InvalidOptionError, match="circuit must be 1 to 64 characters"):
        circuit_protected("payment gateway")


def test_resource_and_circuit_are_seen_on_a_job(app: Windlass):
    """api.md Job: `resource` and `circuit`, waiting and ended, in `get` and `find`."""
    app.configure_resource("stripe", 3)
    add = app.job(resource="stripe", circuit="gateway")(jobs.add)
    handles = [add.enqueue(1, 2), add.using(resource_key="a/b c").enqueue(3, 4), add.using(resource=None).enqueue(5, 6)]
    expected = [("stripe", "gateway"), ("stripe", "gateway"), (None, "gateway")]

    def seen() -> list[tuple[str | None, str | None]]:
        return [((job := app.get(handle.id)).resource, job.circuit) for handle in handles]

    assert seen() == expected
    with app.worker():
        assert [handle.result(timeout=LONG) for handle in handles] == [3, 7, 11]
    assert seen() == expected
    assert sorted((job.resource or "", job.circuit) for job in app.find()) == [
        ("", "gateway"),
        ("stripe", "gateway"),
        ("stripe", "gateway"),
    ]


def test_a_key_without_a_resource_is_refused(app: Windlass):
    """J6.2: the error does not name the owner of the permits."""
    with pytest.raises(InvalidOptionError, match=r"resource_key needs a resource, got resource_key='acme' alone"):
        app.job(jobs.add).using(resource_key="acme").enqueue(1, 2)


def test_arguments_marked_for_encryption_are_not_stored_in_plain_text(app: Windlass):
    """J6.4: refused until this version can encrypt."""
    with pytest.raises(InvalidOptionError, match="encrypted=True: this version cannot encrypt payloads yet"):
        app.job(jobs.add).using(encrypted=True)
    assert app.get(app.job(encrypted=False)(jobs.add).enqueue(1, 2).id).args == (1, 2)


SHOP = """
from windlass import Windlass, circuit_protected

app = Windlass({url!r})


@circuit_protected("gateway")
class Payments:
    @app.job
    def charge(self, number: int) -> int:
        return number

    @app.job(circuit="bank")
    def pay_out(self, number: int) -> int:
        return number

    @staticmethod
    @app.job
    def rates(number: int) -> int:
        return number


@circuit_protected("sepa")
class Sepa(Payments):
    pass
"""


def test_job_methods_are_behind_the_circuit_of_the_class_they_are_accessed_on(apps: Apps, shop: Shop):
    """J6.1: `@app.job` on methods of a marked class; a subclass with a mark of its own has its own circuit."""
    apps()
    module = shop.load(SHOP.format(url=apps.url))
    app: Windlass = module.app
    try:
        methods = [module.Payments.charge, module.Payments.pay_out, module.Payments.rates, module.Sepa.charge]
        handles = [method.enqueue(7) for method in methods]
        assert [app.get(handle.id).circuit for handle in handles] == ["gateway", "bank", "gateway", "sepa"]
        with app.worker():
            assert [handle.result(timeout=LONG) for handle in handles] == [7] * 4
    finally:
        app.close()


def test_circuits_are_looked_up_once_and_forgotten_when_the_application_is_closed(app: Windlass):
    """J4.6: like targets and signatures."""
    job = app.job(gated_jobs.marked)

    def looked_up() -> str | None:
        found = app.registry.resolve(job.target)
        assert isinstance(found, Known)
        return found.circuit

    assert looked_up() == "gateway"
    circuit_protected("bank")(job)
    assert looked_up() == "gateway"
    app.close()
    assert looked_up() == "bank"
