"""Why an execution is not running."""

from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.domain.execution import ExecutionStatus
from windlass.domain.execution_explanation import FailedAttempt, WaitingExecution, explain_execution
from windlass.domain.explanation import Explanation

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
HELD = Explanation("not_released", "it follows another job")
READY = Explanation("ready", "nothing holds it back")
PAUSED_QUEUE = Explanation("queue_paused", "queue default is paused")
RUNNING = Explanation("running", "it runs on node a")
LATER = Explanation("not_due", "it is not due yet", NOON)
FAILED = FailedAttempt("price", 1, "OSError: away")


def execution(status: ExecutionStatus = ExecutionStatus.QUEUED, **more: Any) -> WaitingExecution:
    known = WaitingExecution("id", "orders@1", "a" * 64, "a" * 64, status, "price", 1, NOON)
    return known._replace(**more)


WITH_PARTS = execution(items_left=12, parts_left=3)


@pytest.mark.parametrize(
    ("waiting", "main", "parts", "code", "words"),
    [
        (execution(ExecutionStatus.SUCCEEDED), None, [], "succeeded", "it has ended: succeeded at 2030-01-31"),
        (execution(ExecutionStatus.DLQ, error="E: no"), None, [], "dlq", "in step price: E: no; re-drive it"),
        (execution(ExecutionStatus.PAUSED), READY, [], "paused", "it is paused at step price; resume it"),
        (execution(ExecutionStatus.PAUSED), HELD, [RUNNING], "paused", "what runs goes on until its next boundary"),
        (execution(ExecutionStatus.RUNNING), RUNNING, [], "running", "on node a, in step price, attempt 1"),
        (WITH_PARTS, HELD, [RUNNING, READY], "running", "12 items of step price in 3 parts, of which 1 run"),
        (execution(known_hash="b" * 64), READY, [], "stranded", "definition aaaaaaaaaaaa of pipeline orders@1, which"),
        (execution(), Explanation("target_unknown", ""), [], "stranded", "it waits for a worker that has that very"),
        (WITH_PARTS, HELD, [Explanation("target_unknown", "")], "stranded", "execution redrive id --to-version"),
        (WITH_PARTS, HELD, [LATER, PAUSED_QUEUE], "queue_paused", "in 3 parts: queue default is paused"),
        (WITH_PARTS, HELD, [READY], "waiting_for_items", "in 3 parts; nothing holds it back"),
        (WITH_PARTS, HELD, [], "waiting_for_items", "they get jobs at its next turn"),
        (
            WITH_PARTS._replace(failed=FAILED._replace(item="3.17")),
            HELD,
            [LATER],
            "waiting_for_retry",
            "of which item 3.17 waits for attempt 2 of step price, attempt 1 failed: OSError: away",
        ),
        (WITH_PARTS, HELD, [LATER], "waiting_for_retry", "none of which is due yet"),
        (execution(failed=FAILED), LATER, [], "waiting_for_retry", "it waits for attempt 2 of step price"),
        (execution(), LATER, [], "not_due", "it is not due yet"),
        (execution(), PAUSED_QUEUE, [], "queue_paused", "queue default is paused"),
    ],
)
def test_the_first_reason_that_applies_is_explained(
    waiting: WaitingExecution, main: Explanation | None, parts: list[Explanation], code: str, words: str
):
    """P2.2, P1.4, P10.1: of the execution itself, of its job, of its parts."""
    found = explain_execution(waiting, main, parts)
    assert (found.code, words in found.message) == (code, True), found


def test_the_explanation_of_a_wait_names_its_end():
    """P4.2: that of the job, or the earliest of its parts."""
    assert explain_execution(execution(failed=FAILED), LATER, []).until == NOON
    assert explain_execution(WITH_PARTS, HELD, [LATER]).until == NOON
