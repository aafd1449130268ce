"""Calls as values, and functions that are jobs."""

import asyncio
import copy
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from windlass.domain.backoff import Backoff
from windlass.domain.options import JobOptions
from windlass.errors import InvalidOptionError, SerializationError, TargetNotAllowedError
from windlass.runtime.verbs import Verb, sleep
from windlass.submission.bound_calls import bind
from windlass.submission.call import Call, Flow
from windlass.submission.handle import JobHandle
from windlass.submission.job_function import AsyncJobFunction, JobDecorator, JobFunction, declare
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec

HERE = __name__


def same(handle: object, expected: object) -> bool:
    return handle == expected


class Recorder:
    """A submitter that keeps what it is given; its handles are tuples."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def submit(self, calls: Sequence[Call[Any] | Flow[Any]]) -> Verb[list[JobHandle[Any]]]:
        yield from sleep(0)
        self.calls.extend(calls)
        return [cast("JobHandle[Any]", ("stored", len(self.calls)))]

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        return cast("JobHandle[Any]", (job_id, None if spec is None else spec.returns))


NEEDS_CHAINED_DESCRIPTORS = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="since Python 3.13, what stands below @classmethod is not told the class"
)

recorder = Recorder()
registry = Registry()


def job(**options: Any) -> JobDecorator:
    made = JobOptions.make(**options)
    return cast("JobDecorator", lambda function: declare(function, registry=registry, submitter=recorder, options=made))


@pytest.fixture(autouse=True)
def _nothing_recorded():
    recorder.calls.clear()


def last() -> Call[Any]:
    return recorder.calls[-1]


@job(max_retries=3, queue="billing")
def charge(invoice: int, note: str = "") -> str:
    """Charge an invoice."""
    return f"charged {invoice} {note}"


@job()
async def mail(to: str) -> int:
    return len(to)


class Payments:
    currency = "EUR"

    @job()
    def refund(self, invoice: int) -> str:
        return f"{invoice} {self.currency}"

    @job()
    async def settle(self, invoice: int) -> str:
        return f"{invoice} {self.currency}"

    @job()
    @staticmethod
    def static_below(invoice: int) -> str:
        return str(invoice)

    @staticmethod
    @job()
    def static_above(invoice: int) -> str:
        return str(invoice)

    @job()
    @classmethod
    def class_below(cls, invoice: int) -> str:
        return f"{invoice} {cls.currency}"

    @classmethod
    @job()
    def class_above(cls, invoice: int) -> str:
        return f"{invoice} {cls.currency}"


class DollarPayments(Payments):
    currency = "USD"


class Overriding(Payments):
    def refund(self, invoice: int) -> str:  # type: ignore[override]
        return super().refund(invoice) + "!"


def plain(invoice: int) -> str:
    return str(invoice)


def test_a_job_is_still_its_function():
    assert charge(42, note="x") == "charged 42 x"
    assert asyncio.run(mail("abc")) == 3
    assert isinstance(charge, JobFunction)
    assert isinstance(mail, AsyncJobFunction)


def test_a_job_looks_like_its_function():
    assert charge.__name__ == "charge"
    assert charge.__doc__ == "Charge an invoice."
    assert charge.__module__ == HERE
    assert list(inspect.signature(charge).parameters) == ["invoice", "note"]
    assert charge.target == f"{HERE}:charge"
    assert repr(charge) == f"<job {HERE}:charge>"
    assert charge.options.queue == "billing"


def test_enqueue_submits_a_call():
    assert same(charge.enqueue(42, note="x"), ("stored", 1))
    assert last() == Call(f"{HERE}:charge", (42,), {"note": "x"}, charge.options, last().spec, recorder)
    assert last().spec.returns is str


async def test_aenqueue_submits_a_call():
    assert same(await mail.aenqueue("a"), ("stored", 1))
    assert same(await charge.using(delay=1).aenqueue(1), ("stored", 2))
    assert same(await charge.bind(1).aenqueue(), ("stored", 3))


def test_bind_makes_a_value_and_stores_nothing():
    call = charge.bind(42)
    assert recorder.calls == []
    assert call == charge.bind(42)
    assert call != charge.bind(43)
    with pytest.raises(AttributeError):
        call.args = ()  # type: ignore[misc]
    call.enqueue()
    assert recorder.calls == [call]


def test_options_of_one_call_go_over_those_of_the_decorator():
    charge.using(max_retries=5, delay=60).enqueue(42)
    options = last().options.resolved()
    assert (options.max_retries, options.delay, options.queue) == (5, 60.0, "billing")
    assert charge.options.resolved().max_retries == 3
    charge.using(delay=60).using(queue="slow").bind(1).using(backoff=Backoff.fixed(3)).enqueue()
    options = last().options.resolved()
    assert (options.delay, options.queue, options.backoff) == (60.0, "slow", Backoff.fixed(3))


def test_a_wrong_option_is_refused_where_it_is_written():
    with pytest.raises(InvalidOptionError, match="max_retries"):
        charge.using(max_retries=-1)
    with pytest.raises(InvalidOptionError, match="did you mean 'queue'"):
        charge.bind(1).using(quueue="x")  # type: ignore[call-arg]


@pytest.mark.parametrize("verb", ["enqueue", "bind"])
def test_arguments_that_do_not_bind_are_a_type_error(verb: str):
    """J1.1: arguments are bound to the signature at enqueue (TypeError there)."""
    for holder in (charge, charge.using(delay=1)):
        with pytest.raises(TypeError, match=r"charge\(\): too many positional arguments"):
            getattr(holder, verb)(1, "a", 2)
    with pytest.raises(TypeError, match="missing a required argument: 'invoice'"):
        Payments.refund.bind()  # type: ignore[call-arg]


def test_a_handle_is_typed_by_its_job():
    assert same(charge.handle("id"), ("id", str))


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (Payments.refund, "Payments.refund"),
        (Payments().refund, "Payments.refund"),
        (Payments.settle, "Payments.settle"),
        (Payments.static_below, "Payments.static_below"),
        (Payments.static_above, "Payments.static_above"),
        (Payments().static_below, "Payments.static_below"),
        (Payments.class_below, "Payments.class_below"),
        (Payments.class_above, "Payments.class_above"),
        (Payments().class_above, "Payments.class_above"),
        (DollarPayments.refund, "DollarPayments.refund"),
        (DollarPayments().refund, "DollarPayments.refund"),
        (DollarPayments.class_below, "DollarPayments.class_below"),
        pytest.param(DollarPayments.class_above, "DollarPayments.class_above", marks=NEEDS_CHAINED_DESCRIPTORS),
        (DollarPayments.static_above, "Payments.static_above"),
    ],
)
def test_methods_are_enqueued_without_self_or_cls(method: Any, name: str):
    """J1.1: static and class methods, and instance methods, are targets."""
    method.enqueue(7)
    assert last().target == f"{HERE}:{name}"
    assert last().args == (7,)
    assert [parameter.name for parameter in last().spec.positional] == ["invoice"]
    method.using(delay=1).enqueue(invoice=7)
    assert last().options.resolved().delay == 1


def test_an_enqueued_method_runs_on_an_object_of_its_class():
    """J1.1: at run an InstanceResolver supplies the object."""
    for cls, expected in ((Payments, "7 EUR"), (DollarPayments, "7 USD")):
        for method in (cls.refund, cls.class_below):
            method.enqueue(7)
            assert registry.admit(last().target).ready(registry.instances)(7) == expected


def test_methods_are_called_as_ever():
    assert Payments().refund(7) == "7 EUR"
    assert asyncio.run(DollarPayments().settle(7)) == "7 USD"
    assert Payments.static_below(7) == Payments().static_below(7) == Payments.static_above(7) == "7"
    assert Payments.class_below(7) == Payments().class_below(7) == Payments.class_above(7) == "7 EUR"
    assert DollarPayments.class_below(7) == DollarPayments.class_above(7) == "7 USD"
    assert cast("Any", Payments.refund)(DollarPayments(), 7) == "7 USD"
    assert Overriding().refund(7) == "7 EUR!"


def test_a_function_without_a_lasting_name_is_refused_at_enqueue_and_not_at_decoration():
    """J1.1: lambdas and local functions are refused at enqueue."""

    @job()
    def local(a: int) -> int:
        return a

    unnamed = job()(lambda: 1)

    class Local:
        @job()
        def method(self) -> int:
            return 1

    assert local(1) == 1
    assert unnamed() == 1
    assert Local().method() == 1
    attempts: list[Callable[[], Any]] = [
        lambda: local.enqueue(1),
        lambda: local.bind(1),
        lambda: local.using(delay=1).enqueue(1),
        lambda: local.target,
        unnamed.enqueue,
        Local.method.enqueue,
    ]
    for attempt in attempts:
        with pytest.raises(SerializationError, match="cannot be enqueued"):
            attempt()


def test_jobs_may_be_copied():
    assert copy.copy(charge).target == charge.target
    assert copy.deepcopy(charge.bind(1).args) == (1,)


def bound(function: Callable[..., Any], *args: Any, allow: Sequence[str] = (HERE,), **kwargs: Any) -> Call[Any]:
    options = JobOptions.make(queue="default")
    return bind(function, args, kwargs, registry=Registry(allow), submitter=recorder, options=options)


def test_a_plain_function_may_be_bound_if_its_module_is_allowed():
    """J6.3: anything that is not registered needs `allow`."""
    call = bound(plain, invoice=7)
    assert (call.target, call.args, call.kwargs) == (f"{HERE}:plain", (), {"invoice": 7})
    with pytest.raises(TargetNotAllowedError, match="allow="):
        bound(plain, 7, allow=())
    with pytest.raises(TypeError, match=r"plain\(\)"):
        bound(plain)


def test_a_job_that_is_bound_keeps_its_options():
    call = bind(charge, (7,), {}, registry=registry, submitter=recorder, options=JobOptions.make(delay=1))
    assert (call.options.resolved().queue, call.options.resolved().delay) == ("billing", 1)
    method: Any = Payments.class_below
    call = bind(method, (7,), {}, registry=registry, submitter=recorder, options=JobOptions())
    assert call.target == f"{HERE}:Payments.class_below"
    assert call.options == method.options


def test_a_bound_method_of_an_object_is_refused_saying_how_to_bind_it():
    with pytest.raises(SerializationError, match=r"app\.bind\(Overriding\.refund, \.\.\.\)"):
        bound(Overriding().refund, 7)
    assert bound(Overriding.refund, 7).target == f"{HERE}:Overriding.refund"
