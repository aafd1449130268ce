"""The envelope as a value, and the table of reasons."""

import dataclasses
from datetime import UTC, datetime
from uuid import UUID

import pytest

from windlass.domain.dead_letter import REASONS, UNKNOWN_REASON, DeadLetter, about

P6 = [
    *("tenantId", "executionId", "executionKey", "transitionKey", "correlationId", "resourceType", "resourceName"),
    *("transport", "platform", "terminalStatus", "createdAtEpochMs", "terminalReason", "errorCode", "errorMessage"),
    *("retryable", "retriesObserved", "traceback", "host", "definitionHash"),
]

LETTER = DeadLetter(
    job_id=UUID(int=7),
    fingerprint="8c1f6a2b90d4e377",
    tenant_id="default",
    execution_id=str(UUID(int=7)),
    execution_key=None,
    transition_key="7:0:1",
    correlation_id=None,
    resource_type="job",
    resource_name="shop:charge",
    transport="sqlite",
    platform="python",
    terminal_status="FAILED",
    created_at_epoch_ms=1_893_456_000_123,
    terminal_reason="worker_lost",
    error_code="WorkerLostError",
    error_message="WorkerLostError: gone",
    retryable=True,
    retries_observed=0,
    traceback=None,
    host="web1",
    definition_hash=None,
)


def test_the_envelope_has_the_names_that_other_systems_know():
    """P6.1: all fields of the envelope, and no other."""
    assert list(LETTER.envelope()) == P6
    assert LETTER.envelope()["resourceName"] == "shop:charge"


def test_a_dead_letter_has_its_time_of_failure_and_what_to_do_first():
    """P6.1: by its reason; one that is not known here has an answer too."""
    assert LETTER.created_at == datetime(2030, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert LETTER.first_action == REASONS["worker_lost"].first_action
    assert dataclasses.replace(LETTER, terminal_reason="new").first_action == UNKNOWN_REASON.first_action


def test_every_reason_of_the_specification_has_a_meaning_and_a_first_action():
    """P6.1: in this order."""
    assert list(REASONS) == [
        *("retry_exhausted", "non_retryable", "circuit_deferral_exhausted", "await_timeout", "signal_timeout"),
        *("worker_lost", "poison_payload", "target_not_found", "target_not_allowed", "reject_limit"),
    ]
    for name, reason in REASONS.items():
        assert reason.meaning
        assert reason.first_action.endswith(".")
        assert about(name) is reason
    never = {name for name, reason in REASONS.items() if not reason.retryable}
    assert never == {"non_retryable", "poison_payload", "target_not_found", "target_not_allowed", "reject_limit"}


@pytest.mark.parametrize(
    ("resource_type", "transition_key", "step", "item"),
    [
        ("job", "0190:0:3", None, None),
        ("pipeline", "0190:2:3", 2, None),
        ("pipeline", "0190:12:3:4.0", 12, "4.0"),
        ("pipeline", "damaged", None, None),
    ],
)
def test_the_step_and_the_item_are_read_from_the_transition_key(
    resource_type: str, transition_key: str, step: int | None, item: str | None
):
    """P6.1: of executions; a job has neither."""
    letter = dataclasses.replace(LETTER, resource_type=resource_type, transition_key=transition_key)
    assert (letter.step, letter.item) == (step, item)


def test_a_dead_letter_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LETTER.host = "x"  # type: ignore[misc]
