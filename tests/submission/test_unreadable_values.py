"""Values that cannot be written down, or not even be looked at: refused at enqueue, by errors of ours."""

from typing import Any

import pytest

from tests.support.hostile_values import ClosedMapping, Proxy, nested
from windlass import InvalidOptionError, SerializationError, Windlass
from windlass.domain.options import JobOptions
from windlass.submission.json_depth import MAX_LEVELS


def circular() -> Any:
    inner: list[Any] = []
    inner.append(inner)
    return inner


HOSTILE = {
    "lone surrogate": "\ud800",
    "lone surrogate inside": {"a": ["\ud800"]},
    "lone surrogate as key": {"\ud800": 1},
    "too deep": nested(MAX_LEVELS + 1),
    "far too deep": nested(3_000),
    "circular": circular(),
}
LAZY: dict[str, Any] = {"proxy": Proxy(), "closed mapping": ClosedMapping(a=1)}
KEYS = ("correlation_id", "idempotency_key", "business_key", "resource_key", "queue", "resource", "circuit", "tags")


@pytest.fixture
def app() -> Windlass:
    return Windlass("sqlite://")


def untyped(value) -> None: ...


def typed(value: dict[str, list[int]]) -> None: ...


@pytest.mark.parametrize("name", [*HOSTILE, *LAZY])
@pytest.mark.parametrize("body", [untyped, typed])
def test_an_argument_that_cannot_be_stored_is_named(app: Windlass, body: Any, name: str):
    """J1.1: also where looking at it raises; nothing is stored."""
    value = (HOSTILE | LAZY)[name]
    with pytest.raises(SerializationError, match=r"\(\): argument 'value'"):
        app.job(body).enqueue(value)
    with pytest.raises(SerializationError, match=r"\(\): argument 'value'"):
        app.job(untyped).using(on_success=app.job(body).bind(value)).enqueue(1)
    app.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_params_that_cannot_be_stored_are_refused(app: Windlass, name: str):
    """J1.1: by our error, which shows them."""
    with pytest.raises(SerializationError, match="params"):
        app.job(untyped).using(params={"a": HOSTILE[name]}).enqueue(1)
    app.close()


@pytest.mark.parametrize("name", LAZY)
def test_params_that_cannot_be_read_are_refused(app: Windlass, name: str):
    """J1.1: whatever their class raises."""
    with pytest.raises(InvalidOptionError, match="params"):
        app.job(untyped).using(params=LAZY[name])
    app.close()


@pytest.mark.parametrize("option", KEYS)
@pytest.mark.parametrize("name", [*HOSTILE, *LAZY])
def test_texts_that_are_none_are_refused(option: str, name: str):
    """J1.6: also those whose repr cannot be shown."""
    value = (HOSTILE | LAZY)[name]
    given: Any = {option: [value] if option == "tags" else value}
    with pytest.raises(InvalidOptionError, match="tag" if option == "tags" else option):
        JobOptions.make(**given)
