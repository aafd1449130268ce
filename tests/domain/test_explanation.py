"""Why a job is not running: one reason, the first that must be out of the way, for every job there can be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.batch import BatchState
from windlass.domain.clock import from_micros
from windlass.domain.dependencies import BATCH, GroupCounts
from windlass.domain.explanation import NEVER, Conditions, WaitingJob, explain
from windlass.domain.gates import Gate, taken_after
from windlass.domain.lanes import Lane
from windlass.domain.states import JobStatus

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND

READY = WaitingJob(
    status=JobStatus.PENDING,
    queue="mail",
    target="shop:charge",
    lane=None,
    due_at=NOW - SECOND,
    attempts=0,
    error=None,
    node=None,
    picked_at=None,
    reason=None,
    finished_at=None,
    paused_from=None,
)
CALM = Conditions(NOW, queue_paused=False, gates={}, node_queues=[None])

STRIPE = Lane("stripe").text
ACME = Lane("stripe", "acme").text
GATEWAY = Lane(circuit="gateway").text


def gates(*some: Gate) -> dict[str, Gate]:
    return {gate.name: gate for gate in some}


FULL = Gate("resource:stripe", cap=2, in_use=2)
FULL_KEY = Gate("resource:stripe/acme", cap=2, in_use=3)
FAST = Gate("resource:stripe", rate=3, per_us=SECOND)
TOO_FAST = FAST._replace(taken=taken_after(FAST, 3, NOW))
OPEN = Gate("circuit:gateway", cap=3, opens_at=NOW + 9 * SECOND)
QUEUE = Gate("queue:mail", rate=3, per_us=SECOND)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "running": (
        {"status": JobStatus.RUNNING, "node": "host:1:abc", "picked_at": NOW},
        {},
        "it runs on node host:1:abc since 2027-01-15 08:00:00 UTC",
    ),
    "paused": (
        {"status": JobStatus.PAUSED, "paused_from": "FAILED"},
        {},
        "it is paused (it was FAILED); resume it to continue",
    ),
    "waiting_for_signal": (
        {"status": JobStatus.WAITING, "signal_key": "order:7", "due_at": NEVER},
        {},
        "it waits for the signal 'order:7', without a timeout",
    ),
    "failed": (
        {"status": JobStatus.FAILED, "finished_at": NOW, "reason": "retry_exhausted"},
        {},
        "it failed for good at 2027-01-15 08:00:00 UTC (retry_exhausted); retry it to start it over",
    ),
    "succeeded": (
        {"status": JobStatus.SUCCEEDED, "finished_at": NOW},
        {},
        "it has ended: succeeded at 2027-01-15 08:00:00 UTC",
    ),
    "canceled": ({"status": JobStatus.CANCELED}, {}, "it has ended: canceled"),
    "not_released": ({"due_at": None}, {}, "it follows another job, which has not ended yet"),
    "loading": (
        {"due_at": None, "batch": BatchState("b", GroupCounts(500, 2, 1, BATCH, 0), JobStatus.PENDING, "p 7", NOW)},
        {},
        (
            "it is still loaded: 500 items are stored, the last of them at 2027-01-15 08:00:00 UTC by p 7; 3 of 500 "
            "children have ended. If its loader is gone, enqueue it again with its idempotency_key or with resume=, or "
            "cancel it"
        ),
    ),
    "waiting_for_children": (
        {"due_at": None, "batch": BatchState("b", GroupCounts(500, 2, 1, BATCH, 1), JobStatus.PENDING, None, NOW)},
        {},
        "it runs nothing itself: 3 of 500 children have ended",
    ),
    "not_due": ({"due_at": NOW + 5 * SECOND}, {}, "it is not due yet"),
    "waiting_for_retry": (
        {"due_at": NOW + 5 * SECOND, "attempts": 1, "error": "ValueError: no"},
        {},
        "it waits for its next attempt, 1 attempt has failed: ValueError: no",
    ),
    "queue_paused": ({}, {"queue_paused": True}, "queue mail is paused; resume the queue to run its jobs"),
    "no_worker": ({}, {"node_queues": []}, "no worker is alive; start one: windlass worker <module>:<app>"),
    "no_worker_for_queue": ({}, {"node_queues": [("web",)]}, "no worker that is alive serves queue mail"),
    "target_unknown": (
        {"lane": Lane(target="shop:charge").text},
        {},
        (
            "the workers that took it do not know shop:charge, so it waits for one that does; deploy it, "
            "or have workers import its module: Windlass(include=['shop']); or cancel the job"
        ),
    ),
    "circuit_open": ({"lane": GATEWAY}, {"gates": gates(OPEN)}, "the circuit of gateway is open"),
    "circuit_on_trial": (
        {"lane": GATEWAY},
        {"gates": gates(OPEN._replace(opens_at=NOW, in_use=3))},
        "the circuit of gateway waits for the outcome of its trials",
    ),
    "unknown_resource": ({"lane": STRIPE}, {}, "no resource stripe is configured: it will fail when claimed"),
    "permit_full": (
        {"lane": ACME},
        {"gates": gates(FULL_KEY)},
        "resource stripe for acme lets 2 jobs run at a time, and has 3",
    ),
    "rate_limited": (
        {"lane": STRIPE},
        {"gates": gates(TOO_FAST)},
        "resource stripe has let through as many as its rate allows",
    ),
    "queue_full": (
        {},
        {"gates": gates(QUEUE._replace(cap=1, in_use=1))},
        "queue mail lets 1 job run at a time, and has 1",
    ),
    "queue_rate_limited": (
        {},
        {"gates": gates(QUEUE._replace(taken=taken_after(QUEUE, 3, NOW)))},
        "queue mail has let through as many as its rate allows",
    ),
    "expired": (
        {"expires": NOW},
        {"queue_paused": True},
        "it has expired at 2027-01-15 08:00:00 UTC, and is about to be canceled",
    ),
    "ready": (
        {"lane": GATEWAY},
        {"gates": gates(OPEN._replace(opens_at=NOW))},
        "nothing holds it back: it is next when a worker of queue mail has a slot and those before it are taken",
    ),
}
IN_ORDER = [
    *("not_due", "queue_paused", "no_worker", "target_unknown", "circuit_open", "permit_full", "queue_full"),
    "ready",
]


@pytest.mark.parametrize("code", CASES)
def test_each_code_has_a_sentence(code: str):
    """api.md explain: `code` for programs, `message` for people."""
    job, around, message = CASES[code]
    found = explain(READY._replace(**job), CALM._replace(**around))
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    ("code", "until"),
    [
        ("not_due", NOW + 5 * SECOND),
        ("waiting_for_retry", NOW + 5 * SECOND),
        ("circuit_open", NOW + 9 * SECOND),
        ("rate_limited", NOW + SECOND + SECOND // 20),
        ("queue_rate_limited", NOW + SECOND + SECOND // 20),
        ("permit_full", None),
        ("queue_paused", None),
        ("ready", None),
    ],
)
def test_until_is_when_the_wait_ends_by_itself(code: str, until: int | None):
    job, around, _ = CASES[code]
    found = explain(READY._replace(**job), CALM._replace(**around))
    assert found.until == (None if until is None else from_micros(until))


def test_a_manually_opened_circuit_has_no_end_and_explains_what_to_do():
    """J6.1: it does not promise a time that will not come."""
    found = explain(READY._replace(lane=GATEWAY), CALM._replace(gates=gates(OPEN._replace(opens_at=NEVER))))
    assert (found.code, found.until) == ("circuit_open", None)
    assert found.message == "the circuit of gateway was opened by hand; close it to run its jobs"


def test_the_expiry_is_shown_with_the_reason_of_the_wait():
    """J1.9: not of one that runs, which no longer expires."""
    soon = READY._replace(expires=NOW + SECOND)
    found = explain(soon, CALM._replace(queue_paused=True))
    assert found.code == "queue_paused"
    assert found.message.endswith("; it is canceled unless it has started by 2027-01-15 08:00:01 UTC")
    assert "started" not in explain(soon._replace(status=JobStatus.RUNNING), CALM).message
    ended = explain(READY._replace(status=JobStatus.CANCELED, reason="expired"), CALM)
    assert ended.message == "it has ended: canceled (expired)"


@given(st.sets(st.sampled_from(IN_ORDER[:-1])))
def test_of_several_reasons_the_first_to_remove_is_shown(reasons: set[str]):
    """api.md explain: what stands before all else; the rest shows once that is gone."""
    lane = Lane(
        resource="stripe" if "permit_full" in reasons else None,
        circuit="gateway" if "circuit_open" in reasons else None,
        target="shop:charge" if "target_unknown" in reasons else None,
    )
    job = READY._replace(lane=lane.text, due_at=NOW + 1 if "not_due" in reasons else NOW)
    around = CALM._replace(
        queue_paused="queue_paused" in reasons,
        node_queues=[] if "no_worker" in reasons else [("mail", "web")],
        gates=gates(FULL, OPEN, *([Gate("queue:mail", cap=0)] if "queue_full" in reasons else [])),
    )
    expected = next(code for code in IN_ORDER if code in reasons or code == "ready")
    assert explain(job, around).code == expected


@given(
    st.builds(
        WaitingJob,
        st.sampled_from(JobStatus),
        st.just("mail"),
        st.just("shop:charge"),
        st.sampled_from([None, STRIPE, ACME, GATEWAY, Lane("stripe", "acme", "gateway", "shop:charge").text]),
        st.none() | st.integers(0, 2 * NOW),
        st.integers(0, 3),
        *[st.none()] * 6,
        st.none() | st.integers(0, 2 * NOW),
    ),
    st.builds(
        Conditions,
        st.just(NOW),
        st.booleans(),
        st.sets(st.sampled_from([FULL, FULL_KEY, TOO_FAST, OPEN, QUEUE, OPEN._replace(opens_at=None)])).map(
            lambda some: gates(*some)
        ),
        st.lists(st.sampled_from([None, (), ("mail",), ("web",)]), max_size=2),
    ),
)
def test_every_job_has_an_explanation(job: WaitingJob, around: Conditions):
    """api.md explain: whatever the store holds, a known code and a sentence."""
    found = explain(job, around)
    assert found.code in CASES
    assert found.message
