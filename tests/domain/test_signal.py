"""Signals as values, and what is refused where they are written."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from windlass import InvalidOptionError, Signal, approved, rejected
from windlass.domain.signal import NO_DEADLINE, SignalWait, deadline_or_none, reads_as_id, sent, signal_wait

KEY = "order:7:approved"
ID = "0198c0de-0000-7000-8000-000000000001"


def test_signal_has_the_fields_of_the_specification():
    """api.md: `key, outcome, payload, reason, by`; it cannot be changed."""
    signal = Signal(key=KEY, outcome="approved", payload=1, reason=None, by="ann")
    assert signal == Signal(key=KEY, outcome="approved", payload=1, by="ann")
    with pytest.raises(AttributeError):
        signal.by = "bob"  # type: ignore[misc]


def test_a_payload_approved_or_rejected_becomes_a_signal():
    """J8.5: `payload | approved(payload) | rejected(reason, payload)`."""
    assert sent({"a": 1}) == ("signaled", {"a": 1}, None)
    assert sent(None) == ("signaled", None, None)
    assert sent(approved(2)) == ("approved", 2, None)
    assert sent(rejected("no", 3)) == ("rejected", 3, "no")


@pytest.mark.parametrize(
    ("timeout", "microseconds"), [(None, None), (1.5, 1_500_000), (timedelta(days=1), 86_400_000_000), (1e-9, 1)]
)
def test_wait_with_and_without_a_timeout(timeout: Any, microseconds: int | None):
    assert signal_wait(KEY, timeout) == SignalWait(KEY, microseconds)


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "x" * 256, 7, None])
def test_bad_keys_are_refused(key: Any):
    """J8.5: by the rule of other keys."""
    with pytest.raises(InvalidOptionError, match="the key of a signal must"):
        signal_wait(key, None)


@pytest.mark.parametrize("key", [ID, ID.upper(), ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", f" {ID} "])
def test_keys_that_read_as_uuids_are_refused(key: str):
    """J8.5: `app.signal` takes ids and keys."""
    assert reads_as_id(key)
    with pytest.raises(InvalidOptionError, match="must not read as a UUID"):
        signal_wait(key, None)


def test_other_keys_do_not_read_as_uuids():
    assert reads_as_id(UUID(ID))
    assert not any(map(reads_as_id, [KEY, f"order:{ID}", ID[:-1], 7, None]))


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "soon", True, 10**12])
def test_bad_timeouts_are_refused(timeout: Any):
    with pytest.raises(InvalidOptionError, match="timeout must"):
        signal_wait(KEY, timeout)


@pytest.mark.parametrize("reason", ["", " ", None, 7, "x" * 2_001, "\ud800"])
def test_rejection_without_a_proper_reason_is_refused(reason: Any):
    with pytest.raises(InvalidOptionError, match="the reason of a rejection must be"):
        rejected(reason)


def test_deadline_that_never_comes_is_shown_as_none():
    assert [deadline_or_none(due) for due in (None, 7, NO_DEADLINE)] == [None, 7, None]
