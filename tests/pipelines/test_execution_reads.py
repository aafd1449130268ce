"""Reads of executions: authorization and statements."""

from collections.abc import Iterator
from typing import Any

import pytest

from windlass import ExecutionStateError, ExecutionStatus, InvalidOptionError, NotAuthorizedError, Windlass
from windlass.context import Snooze
from windlass.testing import drain


class Switch:
    """An authorizer that can be turned."""

    allows = True

    def may(self, principal: object, action: str, job: object) -> bool:
        return self.allows


def make_items(app: Windlass) -> Any:
    shop = app.pipeline("shop")

    @shop.expand
    def numbers(count: int) -> Iterator[int]:
        yield from range(count)

    run = shop.submit(3)
    drain(app)
    return run


def test_handles_read_only_what_the_authorizer_allows():
    """P2.7: status and items of an execution are reads, as its result."""
    switch = Switch()
    app = Windlass("sqlite:///:memory:", authorizer=switch)
    run = make_items(app)
    assert (str(run.status()), list(run.items())) == ("SUCCEEDED", [0, 1, 2])
    switch.allows = False
    for read in (run.status, lambda: list(run.items()), lambda: run.result(0), lambda: run.join(0)):
        with pytest.raises(NotAuthorizedError):
            read()
    app.close()


def test_time_of_an_execution_is_that_of_its_last_transition(store_url: str):
    """P2.3: also while it is open: a step writes its time into the log alone."""
    app = Windlass(store_url)
    app.migrate()
    shop = app.pipeline("shop")

    @shop.step
    def quick(number: int) -> int:
        return number

    @shop.step
    def later(number: int) -> int:
        raise Snooze(3600)

    run = shop.submit(1)
    drain(app)
    history = app.executions.history(run.id)
    assert [one.kind for one in history] == ["submitted", "step"]
    assert app.executions.get(run.id).updated_at == history[-1].at > history[0].at
    (found,) = app.executions.find()
    assert found.updated_at == history[-1].at
    app.close()


@pytest.mark.parametrize("tenant", [None, 5, "", "a\0b", "\ud800", "x" * 256])
@pytest.mark.parametrize("verb", ["get", "handle", "history", "explain", "progress", "find"])
def test_a_read_names_one_tenant(verb: str, tenant: Any):
    """P3.3: without one, as where a header is missing, nothing is read: not of all tenants."""
    app = Windlass("sqlite:///:memory:")
    run = make_items(app)
    given = () if verb == "find" else (run.id,)
    with pytest.raises(InvalidOptionError, match="tenant must"):
        getattr(app.executions, verb)(*given, tenant=tenant)
    app.close()


@pytest.mark.parametrize("pipeline", [5, "", "\ud800", object()])
def test_a_pipeline_to_find_is_a_text(pipeline: Any):
    """P3.3: refused before the store is queried."""
    app = Windlass("sqlite:///:memory:")
    with pytest.raises(InvalidOptionError, match="pipeline must"):
        app.executions.find(pipeline=pipeline)
    app.close()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("expected_version", "1"),
        ("expected_version", True),
        ("note", 5),
        ("note", None),
        ("reset_attempts", "no"),
        ("from_step", [1]),
        ("from_step", False),
        ("from_step", 0.0),
    ],
)
def test_a_re_drive_refuses_options_of_another_type(option: str, value: Any):
    """P6.3: nothing is started over by mistake."""
    app = Windlass("sqlite:///:memory:")
    shop = app.pipeline("shop", retry_limit=0)

    @shop.step
    def broken(number: int) -> int:
        raise ValueError("no")

    run = shop.submit(1)
    drain(app)
    with pytest.raises(InvalidOptionError, match=f"{option} must"):
        app.executions.redrive(run.id, **{option: value})
    assert run.status() is ExecutionStatus.DLQ
    app.close()


def test_an_execution_is_not_moved_behind_steps_of_other_types():
    """P1.4: its value is of a type that the other version's steps would pass by."""
    app = Windlass("sqlite:///:memory:")
    old, new = app.pipeline("shop", version="1", retry_limit=0), app.pipeline("shop", version="2")

    @old.step
    def parse(number: int) -> int:
        return number

    @old.step
    def price(number: int) -> int:
        raise ValueError("no")

    @new.step(name="parse")
    def other_parse(number: int) -> str:
        return str(number)

    @new.step(name="price")
    def other_price(text: str) -> str:
        return text

    run = old.submit(1)
    drain(app)
    with pytest.raises(ExecutionStateError, match="the steps before it differ in version 2"):
        app.executions.redrive(run.id, to_version="2")
    assert run.status() is ExecutionStatus.DLQ
    app.close()
