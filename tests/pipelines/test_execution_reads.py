"""Reads of executions: who may, and what is asked for."""

from collections.abc import Iterator
from typing import Any

import pytest

from windlass import NotAuthorizedError, Windlass
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
    """J: status and items of an execution are reads, as its result."""
    switch = Switch()
    app = Windlass("sqlite:///:memory:", authorizer=switch)
    run = make_items(app)
    assert (str(run.status()), list(run.items())) == ("SUCCEEDED", [0, 1, 2])
    switch.allows = False
    for read in (run.status, lambda: list(run.items()), lambda: run.result(0), lambda: run.join(0)):
        with pytest.raises(NotAuthorizedError):
            read()
    app.close()
