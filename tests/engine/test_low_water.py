"""Low-water marks as a value: where they are, when they are used, and how long they may hide a job."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.job import Claim
from windlass.engine.low_water import LOOK_BACK, MANY, SLACK_US, LowWater
from windlass.engine.outlook import Outlook
from windlass.engine.poll_steps import ClaimDue, Look, Pause, Rest
from windlass.stores.claim_order import Head, JobPosition, Starts
from windlass.stores.plans.queues import Heads

STORE = 5_000_000_000
"""The store's time at the time 0 of the process's clock."""
SECOND = 1_000_000
ZERO = "00000000-0000-0000-0000-000000000000"


def job(due: int, level: int = 2, lane: str | None = None) -> Claim:
    return Claim(f"id{due}", 1, "mail", "t", 0, 0, level, due, due, lane)


def head(due: int, level: int = 2) -> Head:
    return Head("mail", level, due, None, JobPosition(due, f"id{due}"))


def in_use(*heads: Head, now: float = 0.0) -> LowWater:
    """Marks after a look that walked over many entries."""
    return LowWater().begin_look(now, hurry=False).after_look(heads, MANY + 1, STORE)


def test_marks_are_not_used_while_looks_walk_over_few_entries():
    """J3.1: without a held snapshot every claim reads from the first entry."""
    water = LowWater().begin_look(0.0, hurry=False).after_look([head(5)], MANY, STORE)
    assert water.starts == {}
    assert not water.overdue(1e9)
    assert water.begin_look(1.0, hurry=True).look_starts == {}


def test_marks_are_positions_of_the_last_jobs_claimed_and_the_first_found():
    water = in_use(head(5), head(7, level=3))
    assert water.starts == {("mail", 2): JobPosition(5, "id5"), ("mail", 3): JobPosition(7, "id7")}
    later = water.after_claim([job(7, 3), job(5), job(6), job(1, 4, lane="resource:r")], STORE)
    assert later.starts == {("mail", 2): JobPosition(6, "id6"), ("mail", 3): JobPosition(7, "id7")}


def test_a_mark_stays_behind_the_present():
    """J3.1: jobs that are stored at the same time do not appear in the order of their due times."""
    late = JobPosition(STORE - SLACK_US, ZERO)
    assert in_use(head(STORE + SECOND)).starts == {("mail", 2): late}
    assert in_use().after_claim([job(STORE)], STORE).starts == {("mail", 2): late}


def test_a_job_that_will_be_due_below_a_mark_removes_it():
    """J3.1: a job that is released keeps its due time."""
    water = in_use(head(5), head(7, level=3))
    assert water.expect([head(6)]).starts.keys() == {("mail", 2), ("mail", 3)}
    assert water.expect([head(4)]).starts.keys() == {("mail", 3)}


def test_every_look_begins_with_the_first_entry_once_a_second():
    water = in_use(head(5))
    assert water.begin_look(LOOK_BACK / 2, hurry=False).look_starts
    assert water.begin_look(LOOK_BACK, hurry=True).look_starts
    assert water.begin_look(LOOK_BACK, hurry=False).look_starts == {}
    assert water.forget().begin_look(0.0, hurry=False).look_starts == {}


def test_a_look_from_the_first_entry_decides_whether_marks_are_used():
    """J3.1: once the snapshot is gone, entries of ended jobs are skipped by the index, and all is read again."""
    partial = in_use(head(5)).begin_look(0.5, hurry=False).after_look([head(6)], 1, STORE)
    assert partial.in_use
    assert not partial.begin_look(1.0, hurry=False).after_look([head(6)], 1, STORE).in_use


# ---------------------------------------------------------------------- how long a job may be hidden

STEP = 0.01


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Jobs: when each becomes visible, and how long before that it was due, in microseconds."""
    times = draw(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30))
    return [(time, draw(st.integers(0, 3 * SECOND))) for time in sorted(times)]


class Store:
    """Waiting jobs of one level, read from a position on; entries of ended jobs are many at any time."""

    def __init__(self, history: list[tuple[float, int]]) -> None:
        self.coming = [(time, job(STORE + int(time * SECOND) - age)) for time, age in history]
        self.waits: dict[str, float] = {}

    def visible(self, now: float, starts: Starts) -> list[Claim]:
        start = starts.get(("mail", 2), JobPosition(-1, ""))
        jobs = [one for time, one in self.coming if time <= now and JobPosition(one.due_at, one.job_id) >= start]
        return sorted(jobs, key=lambda one: (one.due_at, one.job_id))

    def look(self, now: float, starts: Starts) -> Heads:
        found = [head(one.due_at) for one in self.visible(now, starts)[:1]]
        return Heads(STORE + int(now * SECOND), found, frozenset({"mail"}), walked=MANY + 1)

    def claim(self, now: float, claim: ClaimDue) -> list[Claim]:
        starts = {(one.queue, one.level): one.start for one in claim.heads if one.start is not None}
        taken = self.visible(now, starts)[: claim.wanted] if claim.heads else []
        for time, one in [pair for pair in self.coming if pair[1] in taken]:
            self.waits[f"{time} {one.job_id}"] = now - time
        self.coming = [pair for pair in self.coming if pair[1] not in taken]
        return taken


@given(history=histories(), wanted=st.integers(1, 4), notified=st.booleans())
def test_no_job_waits_more_than_about_a_second(history: list[tuple[float, int]], wanted: int, *, notified: bool):
    """J3.1: whatever its due time and whenever it appears; the poller rests as long as it may."""
    store, outlook, now = Store(history), Outlook(fresh=1.0, started=0.0), 0.0
    seen = 0
    while store.coming:
        appeared = sum(time <= now for time, _ in history)
        if notified and appeared > seen:
            outlook, seen = outlook.new_work([("mail", 2)], now), appeared
        outlook, pause = _poll(outlook, store, wanted, now)
        next_at = min([time for time, _ in store.coming if time > now], default=now + 10.0) if notified else now + 10.0
        now = min(now + max(pause, STEP), max(next_at, now + STEP))
        assert now < 60.0
    limit = LOOK_BACK + len(history) * 2 * STEP + (0.0 if notified else 1.0) + 0.1
    assert max(store.waits.values()) <= limit


def _poll(outlook: Outlook, store: Store, wanted: int, now: float) -> tuple[Outlook, float]:
    """Poll as the poller does; give how long it rests: as the strategy says, at most a second."""
    outlook = outlook.begin_poll(wanted, now)
    while True:
        match outlook.next_action(now):
            case Look():
                outlook = outlook.begin_look(now)
                outlook = outlook.after_look(store.look(now, outlook.low_water.look_starts), now)
            case ClaimDue() as claim:
                jobs = store.claim(now, claim)
                outlook = outlook.after_claim(claim, jobs, now, marks=True)
            case Pause(seconds):
                return outlook, seconds
            case Rest(at_most):
                return outlook.rested(), min(at_most, 1.0)
