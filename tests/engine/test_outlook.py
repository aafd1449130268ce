"""The poller's decisions as tables: what is known, what happens, what follows."""

from collections.abc import Callable

import pytest

from windlass.domain.circuit import Circuit, CircuitChange
from windlass.domain.clock import MICROSECONDS
from windlass.domain.job import Claim
from windlass.engine.claim_reach import ClaimReach
from windlass.engine.outlook import (
    BUSY_FRESH,
    CLAIM_IN_DOUBT_FOR,
    CLAIM_IN_DOUBT_PAUSE,
    CONTENTION_PAUSE,
    LANES_REST,
    Outlook,
)
from windlass.engine.poll_steps import ClaimDue, Look, Pause, Poll, Rest
from windlass.stores.claim_order import Head
from windlass.stores.plans.queues import FIRST_LANE, Heads

FRESH = 1.0
STORE = 5_000_000_000
"""The store's time at the time 0 of the process's clock."""
LATER = ("mail", "k=v")
"""A lane at which the next look goes on."""
OPEN = frozenset({"mail", "sms"})


def due_in(seconds: float, queue: str = "mail", level: int = 2, lane: str | None = None) -> Head:
    return Head(queue, level, STORE + int(seconds * MICROSECONDS), lane)


def found(*heads: Head, held: bool = False, after: tuple[str, str] = FIRST_LANE) -> Heads:
    return Heads(STORE, list(heads), OPEN, held=held, after=after)


def looked(*heads: Head, held: bool = False, after: tuple[str, str] = FIRST_LANE) -> Outlook:
    """An outlook whose only look was answered at the time 0."""
    return Outlook(FRESH, 0.0).begin_look(0.0).after_look(found(*heads, held=held, after=after), 0.0)


def jobs(count: int, queue: str = "mail", level: int = 2) -> list[Claim]:
    return [Claim(f"{queue}{level}-{number}", 1, queue, "t", 0, 0, level, STORE, STORE) for number in range(count)]


def claimed(outlook: Outlook, wanted: int, got: int) -> Outlook:
    """The same in a poll that has claimed."""
    begun = outlook.begin_poll(wanted, 0.0)
    return begun.after_claim(begun.claim(wanted, 0.0), jobs(got), 0.0)


IDLE, DUE = looked(), looked(due_in(0))
FULL = claimed(DUE, 8, 8)
"""The last claim brought all it asked for."""


# ---------------------------------------------------------------------- before the claim

BEFORE_THE_CLAIM: list[tuple[str, Outlook, int, float, type[Look | ClaimDue | Pause]]] = [
    # what is known, room for so many jobs, at the time, what follows
    ("nothing was ever looked at", Outlook(FRESH, 0.0), 8, 0.0, Look),
    ("there is no room", DUE, 0, 0.0, Pause),
    ("there is no room and nothing was looked at", Outlook(FRESH, 0.0), -3, 0.0, Pause),
    ("what is known is fresh", DUE, 8, FRESH, ClaimDue),
    ("what is known is too old", DUE, 8, FRESH + 0.01, Look),
    ("something changed", DUE.changed(), 8, 0.01, Look),
    ("something changed at this moment", DUE.changed(), 8, 0.0, ClaimDue),
    ("claims come back full", FULL, 8, FRESH, ClaimDue),
    ("claims come back full and what is known is too old", FULL, 8, FRESH + 0.01, Look),
    ("claims come back full and something changed", FULL.changed(), 8, BUSY_FRESH, ClaimDue),
    ("claims come back full and something changed a while ago", FULL.changed(), 8, BUSY_FRESH + 0.01, Look),
    ("claims come back full and lanes are left", FULL._replace(many_lanes=True), 8, BUSY_FRESH, ClaimDue),
    ("claims come back full and lanes are left for long", FULL._replace(many_lanes=True), 8, BUSY_FRESH + 0.01, Look),
    ("claims come back short and lanes are left", DUE._replace(many_lanes=True), 8, FRESH, ClaimDue),
    ("nothing is due", IDLE, 8, 0.0, ClaimDue),
]


@pytest.mark.parametrize(
    ("known", "room", "now", "follows"), [row[1:] for row in BEFORE_THE_CLAIM], ids=[row[0] for row in BEFORE_THE_CLAIM]
)
def test_a_poll_looks_if_what_is_known_is_too_old_and_claims_what_is_due(
    known: Outlook, room: int, now: float, follows: type
):
    """J3.6: looks and claims cost statements, so none is made that could find nothing new."""
    assert type(known.begin_poll(room, 0.0).next_action(now)) is follows


def test_a_poll_looks_once_before_its_claim_also_when_more_is_reported_meanwhile():
    """J3.6: or under a storm of notifications it would look for ever."""
    poll = DUE.changed().begin_poll(8, 0.0).begin_look(1.0).changed().after_look(found(due_in(0)), 2.0)
    assert poll.stale
    assert type(poll.next_action(3.0)) is ClaimDue


def test_a_node_without_room_waits_a_second():
    """J3.1: what makes room without freeing a slot, an outcome that is written, wakes no poller."""
    assert DUE.begin_poll(0, 0.0).next_action(0.0) == Pause(CLAIM_IN_DOUBT_PAUSE)


def test_a_claim_requests_only_due_jobs():
    """J3.1: by the store's clock, as far as it can be known."""
    heads = [due_in(-1), due_in(2, "sms"), due_in(3, lane="k=v")]
    known = looked(*heads)
    assert known.claim(8, 0.0).heads == heads[:1]
    assert known.claim(8, 2.0).heads == heads[:2]
    assert known.claim(8, 3.0).heads == heads
    assert IDLE.claim(8, 1e6).heads == []


@pytest.mark.parametrize(
    ("levels", "wanted", "widening", "chunk"),
    [
        (1, 8, 1, 8),
        (2, 100, 1, 128),
        (2, 1, 1, 1),
        (3, 4, 1, 4),
        (3, 100, 1, 64),
        (10, 100, 1, 16),
        (50, 100, 1, 8),
        (50, 100, 2, 16),
        (50, 100, 64, 128),
    ],
)
def test_a_claim_reads_all_requested_jobs_of_few_levels_and_a_share_of_many(
    levels: int, wanted: int, widening: int, chunk: int
):
    """J3.1: in powers of two, so that there are few statements; more after claims that were cut short."""
    known = looked(*(due_in(0, queue=f"q{number}") for number in range(levels)))
    assert known._replace(reach=ClaimReach(widening=widening)).claim(wanted, 0.0).chunk == chunk


# ---------------------------------------------------------------------- after the claim

OTHER = due_in(0, "sms")
AFTER_THE_CLAIM: list[tuple[str, Outlook, int, Heads, float, Pause | Rest]] = [
    # what was known, jobs got of 8, what the look after the claim finds, at the time, what follows
    ("some came, more is due", DUE, 3, found(due_in(0)), 0.0, Pause(0)),
    ("none came, the same is due", DUE, 0, found(due_in(0)), 0.0, Pause(CONTENTION_PAUSE)),
    ("none came, other jobs are due", DUE, 0, found(due_in(0), OTHER), 0.0, Pause(0)),
    ("none came, another level is due", DUE, 0, found(due_in(0, level=9)), 0.0, Pause(0)),
    ("none came, a lane is due", DUE, 0, found(due_in(0, lane="k=v")), 0.0, Pause(0)),
    ("nothing is due", DUE, 3, found(), 0.0, Rest(float("inf"))),
    ("nothing is due yet", DUE, 0, found(due_in(4), due_in(2.5, "sms")), 0.0, Rest(2.5)),
    ("lanes are left", DUE, 0, found(after=LATER), 0.0, Pause(0)),
    ("lanes are left and one is due", DUE, 0, found(OTHER, after=LATER), 0.0, Pause(0)),
    ("the last of many lanes", looked(after=LATER), 0, found(), 0.0, Rest(LANES_REST)),
    ("the last of lanes that took long", looked(after=LATER), 0, found(), 0.5, Rest(5.0)),
    ("a claim has no answer", DUE.claim_failed(0.0), 0, found(), 0.0, Rest(CLAIM_IN_DOUBT_PAUSE)),
    ("a claim has no answer, a job is due soon", DUE.claim_failed(0.0), 0, found(due_in(0.5)), 0.0, Rest(0.5)),
]


@pytest.mark.parametrize(
    ("known", "got", "answer", "now", "follows"),
    [row[1:] for row in AFTER_THE_CLAIM],
    ids=[row[0] for row in AFTER_THE_CLAIM],
)
def test_a_poll_whose_claim_came_back_short_looks_again_and_waits(
    known: Outlook, got: int, answer: Heads, now: float, follows: Pause | Rest
):
    """J3.5: at once while there is work, briefly while other nodes hold it, else as the strategy says."""
    poll = claimed(known, 8, got)
    assert poll.next_action(0.0) == Look()
    after = poll.begin_look(0.0).after_look(answer, 0.0)
    assert after.next_action(now) == follows


def test_a_poll_whose_claim_came_back_full_claims_again_without_a_look():
    """J3.6: what is known is as good as before."""
    assert FULL.next_action(0.0) == Pause(0)


WIDENING: list[tuple[str, int, Heads | None, int]] = [
    ("cut short", 3, found(due_in(0)), 8),
    ("held by others", 0, found(due_in(0)), 8),
    ("nothing left", 3, found(), 1),
    ("full", 8, None, 2),
]


@pytest.mark.parametrize(("got", "answer", "widening"), [row[1:] for row in WIDENING], ids=[row[0] for row in WIDENING])
def test_claims_that_are_cut_short_read_twice_as_much_until_nothing_is_due(
    got: int, answer: Heads | None, widening: int
):
    poll = claimed(DUE._replace(reach=ClaimReach(widening=4)), 8, got)
    assert (poll if answer is None else poll.begin_look(0.0).after_look(answer, 0.0)).reach.widening == widening


def test_a_poll_before_the_claim_does_not_change_the_record_of_claims():
    begun = (
        DUE._replace(reach=ClaimReach(widening=4)).begin_poll(8, 0.0).begin_look(2.0).after_look(found(due_in(0)), 2.0)
    )
    assert (begun.reach.widening, begun.recent) == (4, ())


def test_the_polling_strategy_sees_the_last_ten_polls_and_the_time_since_a_job():
    """J3.5: a poll without a job counts as empty; the start counts until there was a job."""
    known = DUE
    assert known.observation(7.0, 0.5).idle_for == 7.0
    for got in range(12):
        known = known.after_claim(known.claim(20, 0.0), jobs(got), now=float(got))
    seen = known.after_claim(known.claim(20, 0.0), [], now=50.0).observation(60.0, 0.25)
    assert seen.recent == (*((20, got) for got in range(3, 12)), (20, 0))
    assert (seen.idle_for, seen.utilisation, seen.woken) == (49.0, 0.25, False)


# ---------------------------------------------------------------------- looks


def test_an_answer_replaces_what_was_known():
    known = looked(due_in(0), due_in(3, "sms")).begin_look(4.0).after_look(found(OTHER)._replace(now=STORE + 9), 5.0)
    assert known.heads == {("sms", 2, None): STORE}
    assert known.store_now(5.0) == STORE + 9
    assert known.store_now(6.5) == STORE + 9 + 1_500_000
    assert known.looked_at == 4.0, "what is known is as old as the question"


@pytest.mark.parametrize(
    ("answers", "many", "held", "since"),
    [
        ([found()], False, False, 0.0),
        ([found(held=True)], False, True, 0.0),
        ([found(held=True), found()], False, False, 1.0),
        ([found(after=LATER)], True, False, 0.0),
        ([found(after=LATER), found()], True, False, 0.0),
        ([found(held=True, after=LATER), found()], True, True, 0.0),
        ([found(held=True, after=LATER), found(after=("sms", "k"))], True, True, 0.0),
        ([found(held=True, after=LATER), found(), found()], False, False, 2.0),
    ],
)
def test_a_round_through_the_lanes_may_take_several_looks(answers: list[Heads], many: bool, held: bool, since: float):
    """J3.1, J6.2: a gate that kept jobs back in any look of a round is remembered until the round is over."""
    known = Outlook(FRESH, 0.0)
    for time, answer in enumerate(answers):
        known = known.begin_look(float(time)).after_look(answer, float(time))
    assert (known.many_lanes, known.answer.held, known.lanes_since) == (many, held, since)


def test_a_round_through_the_lanes_can_be_restarted():
    known = looked(held=True, after=LATER).from_first_lane()
    assert not known.lanes_remain
    assert not known.begin_look(3.0).after_look(found(), 3.0).answer.held


def test_a_look_drops_earlier_reports_and_keeps_those_made_during_it():
    """J3.6: the answer may be older than what is reported while it is on its way."""
    reported = DUE.changed().jobs_ended()
    asked = reported.begin_look(1.0)
    assert (asked.stale, asked.ended_during_look) == (False, False)
    assert not asked.after_look(found(), 1.0).stale
    assert asked.changed().after_look(found(), 1.0).stale


@pytest.mark.parametrize(
    ("held_before", "held_now", "stale"), [(False, True, True), (False, False, False), (True, False, True)]
)
def test_jobs_that_end_elsewhere_during_a_look_count_if_a_gate_keeps_jobs_back(
    held_before: bool, held_now: bool, stale: bool
):
    """J3.6, J6.2: the answer on its way may be older than the permit they released."""
    asked = looked(held=held_before).begin_look(1.0).jobs_ended()
    assert asked.after_look(found(held=held_now), 1.0).stale is stale


# ---------------------------------------------------------------------- what is reported

CHANGE = CircuitChange("stripe", Circuit(), Circuit(), STORE)
Report = Callable[[Outlook], Outlook]
REPORTED: list[tuple[str, Outlook, Report, bool, bool, list[Head]]] = [
    # what was known, what is reported, stale, woken, what is due then
    ("new work", IDLE, lambda o: o.new_work([("mail", 7)], 0.0), False, True, [due_in(0, level=7)]),
    ("new work, due later", looked(due_in(9)), lambda o: o.new_work([("mail", 2)], 0.0), False, True, [due_in(0)]),
    ("new work, due before", looked(due_in(-9)), lambda o: o.new_work([("mail", 2)], 0.0), False, True, [due_in(-9)]),
    ("new work of an unknown queue", IDLE, lambda o: o.new_work([("new", 2)], 0.0), True, True, []),
    ("new work while busy", FULL, lambda o: o.new_work([("mail", 2)], 0.0), True, True, [due_in(0)]),
    ("no work at all", IDLE, lambda o: o.new_work([], 0.0), False, True, []),
    ("a change", IDLE, lambda o: o.changed(), True, True, []),
    ("a retry that is due", IDLE, lambda o: o.expect([due_in(-1)]), False, False, [due_in(-1)]),
    ("a retry later than others", DUE, lambda o: o.expect([due_in(5)]), False, False, [due_in(0)]),
    ("a retry in a lane", IDLE, lambda o: o.expect([due_in(0, lane="l")]), False, False, [due_in(0, lane="l")]),
    ("a retry of a paused queue", IDLE, lambda o: o.expect([due_in(0, "paused")]), True, False, []),
    ("a changed circuit", IDLE, lambda o: o.circuits_changed([CHANGE]), True, True, []),
    ("jobs ended, none is kept back", IDLE, lambda o: o.jobs_ended(), False, False, []),
    ("jobs ended, some are kept back", looked(held=True), lambda o: o.jobs_ended(), True, True, []),
    (
        "a permit of a lane",
        looked(due_in(9, lane="a"), due_in(9, lane="b")),
        lambda o: o.permits_freed([("mail", "a")], 0.0),
        *(False, False, [due_in(0, lane="a")]),
    ),
    ("a permit of a lane without jobs", IDLE, lambda o: o.permits_freed([("mail", "a")], 0.0), False, False, []),
    ("a permit that jobs wait for", looked(held=True), lambda o: o.permits_freed([], 0.0), True, False, []),
    ("a slot", IDLE.begin_poll(0, 0.0), lambda o: o.slot_freed(), False, False, []),
]


@pytest.mark.parametrize(
    ("known", "report", "stale", "woken", "due"), [row[1:] for row in REPORTED], ids=[row[0] for row in REPORTED]
)
def test_a_report_makes_jobs_due_or_requires_a_look(
    known: Outlook, report: Report, stale: bool, woken: bool, due: list[Head]
):
    """J3.6: a look is called for only where the report does not say enough."""
    after = report(known)
    assert (after.stale, after.woken, after.due(0.0)) == (stale, woken, due)


def test_a_report_does_not_drop_another():
    known = DUE.changed()
    for report in (
        lambda o: o.new_work([("mail", 1)], 0.0),
        lambda o: o.expect([]),
        lambda o: o.permits_freed([], 0.0),
    ):
        assert report(known).stale


def test_the_strategy_is_notified_once_of_a_wakeup_of_the_poller():
    """J3.5: a wakeup gives a burst."""
    woken = IDLE.changed()
    assert woken.observation(0.0, 0.0).woken
    assert not woken.rested().observation(0.0, 0.0).woken


@pytest.mark.parametrize(
    ("before", "opens_at", "after"),
    [
        ({}, 7, {"stripe": 7}),
        ({"stripe": 3}, 7, {"stripe": 7}),
        ({"stripe": 3, "sms": 1}, None, {"sms": 1}),
        ({}, None, {}),
    ],
)
def test_circuits_that_change_here_are_known_before_the_next_look(
    before: dict[str, int], opens_at: int | None, after: dict[str, int]
):
    """J6.1: attempts that are about to start ask for them."""
    known = IDLE._replace(answer=IDLE.answer._replace(shut=before))
    change = CHANGE._replace(after=Circuit(opens_at=opens_at))
    assert known.circuits_changed([change]).answer.shut == after
    assert known.answer.shut == before


def test_an_answer_from_before_a_circuit_changed_does_not_hide_the_change():
    """J6.1: attempts that start before the next look are held back."""
    change = CHANGE._replace(after=Circuit(opens_at=7))
    looking = IDLE.begin_look(1.0).circuits_changed([change])
    known = looking.after_look(found()._replace(shut={"sms": 3}), 2.0)
    assert known.answer.shut == {"stripe": 7, "sms": 3}
    assert known.stale, "it is looked at again"
    later = known.begin_look(3.0).after_look(found()._replace(shut={"sms": 3}), 4.0)
    assert later.answer.shut == {"sms": 3}


@pytest.mark.parametrize(
    ("known", "wants"),
    [
        (IDLE, False),
        (IDLE.begin_poll(1, 0.0), False),
        (IDLE.begin_poll(0, 0.0), True),
        (IDLE.begin_poll(0, 0.0).slot_freed(), False),
    ],
)
def test_a_poll_without_room_waits_for_a_free_slot(known: Outlook, wants: bool):
    """J3.1: until a slot frees up."""
    assert known.wants_room is wants


@pytest.mark.parametrize(
    ("failed", "since", "asked_at", "unsure"),
    [
        (5.0, 5.0, 5.0 + CLAIM_IN_DOUBT_FOR, 5.0),
        (5.0, 5.0, 5.1 + CLAIM_IN_DOUBT_FOR, None),
        (9.0, 5.0, 5.1 + CLAIM_IN_DOUBT_FOR, 9.0),
    ],
)
def test_jobs_of_a_claim_without_an_answer_are_looked_for_until_it_cannot_be_carried_out_any_more(
    failed: float, since: float, asked_at: float, unsure: float | None
):
    """J3.2: unless another claim has failed since."""
    assert IDLE.claim_failed(failed).after_recovery(since, asked_at).claim_in_doubt_since == unsure


def test_a_poll_that_was_cut_off_is_followed_by_a_whole_one():
    """A look or claim that raises leaves a poll half done."""
    assert claimed(DUE, 8, 3).begin_poll(5, 0.0).poll == Poll(5)
