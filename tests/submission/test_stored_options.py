"""What of a job's options is stored, and read back."""

from typing import Any

import msgspec
import pytest

from windlass.domain.backoff import Backoff
from windlass.domain.options import JobOptions
from windlass.errors import SerializationError
from windlass.runtime.error_classes import class_name
from windlass.runtime.global_names import main_module_name
from windlass.submission.stored_options import (
    DEFAULTS,
    MAX_CACHED_TEXT,
    RetryRules,
    StoredCallback,
    StoredOptions,
    from_text,
    to_text,
)

BARE = StoredCallback(target="shop:report", args=([None], {}), marks={"0": "outcome"})
FULL = StoredCallback(
    target="shop:report",
    args=([None, {"n": [1]}], {"note": "x"}),
    marks={"0": "value"},
    queue="ops",
    priority=4,
    due_at=7,
    delay_us=5,
    options='{"max_retries":1}',
    tags=("a", "b"),
    params='{"t":1}',
    correlation_id="c",
)


def stored(callbacks: Any = None, **options: Any) -> str | None:
    return to_text(JobOptions.make(**options).resolved(), callbacks or {})


def test_defaults_are_not_stored():
    """J5.5: a job without options and callbacks has no text at all."""
    assert stored() is None
    assert from_text(None) is from_text("") is DEFAULTS


def test_options_and_callbacks_are_restored():
    """J5.5: next to the other options, each only as far as it differs from its defaults."""
    text = stored({"on_success": BARE, "on_failure": FULL}, max_retries=3, backoff=Backoff.fixed(2), timeout=None)
    assert from_text(text) == StoredOptions(3, Backoff.fixed(2), None, None, BARE, FULL)
    written = msgspec.json.decode(text or "")["on_success"]
    assert written == {"target": "shop:report", "args": [[None], {}], "marks": {"0": "outcome"}}


def test_one_callback_without_the_other_is_accepted():
    """J5.5: the other side has none."""
    read = from_text(stored({"on_failure": BARE}))
    assert (read.on_success, read.on_failure) == (None, BARE)


def test_exception_classes_are_stored_by_name():
    """J5.1: nothing is imported for them; of the main file they have the name that other processes know it by."""

    class LocalError(Exception): ...

    in_main = type("InMainError", (Exception,), {"__module__": "__main__"})
    rules = from_text(stored(retry_on=(ConnectionError, LocalError), give_up_on=in_main)).rules
    local = f"{__name__}:{LocalError.__qualname__}"
    assert rules == RetryRules(frozenset({"builtins:ConnectionError", local}), frozenset({class_name(in_main)}))
    assert class_name(in_main) == f"{main_module_name()}:InMainError"
    assert stored(retry_on=None, give_up_on=()) is None
    assert from_text(stored(max_retries=1)).rules is None


def test_long_texts_are_not_cached():
    """J3.3: a node's memory does not grow with the arguments of callbacks."""
    long = msgspec.structs.replace(BARE, args=([None, "x" * MAX_CACHED_TEXT], {}))
    text, short = stored({"on_success": long}), stored({"on_success": BARE})
    assert from_text(text) == from_text(text)
    assert from_text(text) is not from_text(text)
    assert from_text(short) is from_text(short)


def test_unknown_fields_of_a_newer_version_are_ignored():
    """J6.3: nodes of two versions share the table."""
    assert from_text('{"on_success":{"target":"a:b","args":[[],{}],"new":1},"later":true}').on_success is not None


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "[]",
        '{"on_success":7}',
        '{"on_failure":{"args":[[],{}]}}',
        '{"on_failure":{"target":"a:b"}}',
        '{"retry_on":"a:b"}',
    ],
)
def test_damage_is_reported(text: str):
    """J1.1: what cannot be read is an error that shows it, not a job without its options."""
    with pytest.raises(SerializationError, match=r"stored options .* are damaged"):
        from_text(text)
