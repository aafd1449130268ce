"""`drain` and gates: what may pass runs, what may not waits, and moving the clock lets it through."""

import pytest

from tests.testing import kit_shop
from tests.testing.kit_shop import charge
from windlass import JobStatus, UnknownResourceError, Windlass
from windlass.testing import advance, drain, isolated


def test_jobs_behind_gates_are_drained_like_any_other(shop: Windlass):
    """J3.4: one at a time, so one permit is enough for all of them."""
    shop.configure_resource("stripe", 1)
    handles = [charge.using(resource="stripe", circuit="gateway").enqueue(number) for number in range(3)]
    handles += [charge.enqueue(number) for number in range(3)]
    assert drain(shop).succeeded == 6
    assert {handle.status() for handle in handles} == {JobStatus.SUCCEEDED}


def test_a_rate_and_an_open_circuit_wait_for_the_clock(shop: Windlass):
    """J6.1, J6.2: by the test's own clock."""
    shop.configure_resource("api", None, rate=2, per="minute")
    handles = [charge.using(resource="api").enqueue(number) for number in range(3)]
    assert drain(shop).succeeded == 2
    assert shop.explain(handles[-1].id).code == "no_worker", "no worker runs: that comes first"
    advance(64)
    assert drain(shop).succeeded == 1

    shop.circuit("gateway").open(create=True)
    held = charge.using(circuit="gateway").enqueue(7)
    advance(3600)
    assert drain(shop).succeeded == 0
    shop.circuit("gateway").close()
    assert drain(shop).succeeded == 1
    assert held.status() is JobStatus.SUCCEEDED


def test_every_store_has_its_own_resources():
    """J6.2: what one test has configured, the next one has not."""
    for _ in range(2):
        with isolated(kit_shop.app) as app:
            with pytest.raises(UnknownResourceError):
                charge.using(resource="stripe").enqueue(1)
            app.configure_resource("stripe", 1)
            charge.using(resource="stripe").enqueue(1)
            assert drain(app).succeeded == 1
