"""Steering a queue or a circuit that is not known is refused; what a program declares is known before its first job."""

from typing import Any

import pytest

from tests.engine import jobs
from tests.stores.recording import recorded, statements
from windlass import CircuitState, UnknownCircuitError, UnknownQueueError, Windlass, circuit_protected
from windlass.stores.plan import Step
from windlass.stores.plans import queues


@circuit_protected("warehouse")
def pick(order: int) -> int:
    return order


@pytest.mark.parametrize("verb", ["pause_queue", "resume_queue", "limit_queue"])
async def test_an_unknown_queue_is_refused_with_a_suggestion(app: Windlass, verb: str):
    """J10.7: nothing is paused, limited or made; the error names the queue that was probably meant."""
    await app.job(jobs.note).using(queue="billing").aenqueue("x")
    with pytest.raises(UnknownQueueError, match=r"no queue 'blling' is known \(did you mean 'billing'\?\)") as refused:
        await getattr(app, f"a{verb}")("blling")
    assert (refused.value.queue, refused.value.suggestion) == ("blling", "billing")
    with pytest.raises(UnknownQueueError, match=r"no queue 'xyz' is known: no job was ever in it"):
        await getattr(app, f"a{verb}")("xyz")
    assert [queue.name for queue in await app.aqueues()] == ["billing"]


def test_a_queue_that_code_declares_is_known_before_its_first_job(app: Windlass):
    """J10.7: so is the default queue, one that was created on purpose, and one that another program has used."""
    app.job(queue="mail")(jobs.note)
    assert app.pause_queue("mail")
    assert (app.resume_queue("mail"), app.resume_queue("default")) == (True, False)
    app.limit_queue("mail", 3)
    with pytest.raises(UnknownQueueError, match="did you mean 'mail'"):
        app.limit_queue("mial", 3)
    app.limit_queue("mial", 3, create=True)
    assert app.pause_queue("fax", create=True)
    assert [(queue.name, queue.concurrency) for queue in app.queues()] == [("fax", None), ("mail", 3), ("mial", 3)]
    assert (app.resume_queue("fax"), app.resume_queue("mial")) == (True, False)


async def test_an_unknown_circuit_is_refused_with_a_suggestion(app: Windlass):
    """J10.7: open, close and reset; looking at one is no steering."""
    await app.aconfigure_circuit("payment-gateway")
    switch = app.circuit("payment-gatway")
    says = r"no circuit 'payment-gatway' is known \(did you mean 'payment-gateway'\?\)"
    for move in (switch.aopen, switch.aclose, switch.areset):
        with pytest.raises(UnknownCircuitError, match=says) as refused:
            await move()
        assert (refused.value.service, refused.value.suggestion) == ("payment-gatway", "payment-gateway")
    assert await switch.astate() is CircuitState.CLOSED
    assert [one.service for one in await app.acircuits()] == ["payment-gateway"]


def test_a_circuit_that_code_declares_is_known_before_its_first_call(app: Windlass):
    """J10.7: by `circuit=`, by `@circuit_protected`, or because it was created on purpose."""
    app.job(circuit="gateway")(jobs.note)
    app.job(pick)
    for service in ("gateway", "warehouse"):
        app.circuit(service).open()
        app.circuit(service).close()
    with pytest.raises(UnknownCircuitError, match="did you mean 'warehouse'"):
        app.circuit("warehose").open()
    app.circuit("warehose").open(create=True)
    app.circuit("warehose").reset()
    assert [one.service for one in app.circuits()] == ["gateway", "warehose", "warehouse"]


def test_many_queues_are_listed_in_as_many_statements_as_one(app: Windlass):
    """J1.7: with their limits and heads, whatever their number."""
    note: Any = app.job(jobs.note)

    def listed() -> tuple[int, list[queues.Depth]]:
        steps: list[Step] = []
        found: list[queues.Depth] = app.database.read(recorded(steps, queues.depths))
        return statements(steps), found

    app.enqueue_many([note.using(queue="q00").bind("x")])
    few, (alone,) = listed()
    app.enqueue_many([note.using(queue=f"q{number:02}", delay=60).bind("x") for number in range(50)])
    app.enqueue_many([note.using(queue="q07", circuit="gateway", priority=4).bind("x")] * 3)
    app.limit_queue("q07", 2, rate=9, per="hour")
    many, all_of_them = listed()
    assert few == many == 4
    assert [(depth.name, depth.waiting) for depth in all_of_them] == [
        (f"q{number:02}", {0: 2, 7: 4}.get(number, 1)) for number in range(50)
    ]
    assert all_of_them[0].first_due == alone.first_due
    heads = [app.find(queue=name).items for name in ("q07", "q08")]
    assert [depth.first_due for depth in all_of_them[7:9]] == [
        min(int(job.due_at.timestamp() * 1_000_000 + 0.5) for job in jobs_there if job.due_at) for jobs_there in heads
    ]
    (limited,) = [queue for queue in app.queues() if queue.concurrency is not None]
    assert (limited.name, limited.concurrency, limited.rate, limited.per) == ("q07", 2, 9, "hour")
