"""What a node knows of claimable work, and what its poller does next: a pure value.

A poll looks at the store if what is known is too old, claims what is due for the slots that are free, looks again
unless the claim brought all it asked for, and waits. What happens meanwhile changes the same value: a notification, a
permit that comes back, a slot that frees up. Times are seconds of the process's monotonic clock; due times are the
store's, in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from windlass.domain.circuit import CircuitChange
from windlass.domain.poll_interval import WINDOW, PollObservation
from windlass.domain.priority import MAX_PRIORITY
from windlass.stores.claim_order import Head
from windlass.stores.plans.queues import FIRST_LANE, Heads

LANES_REST = 1.0
"""Seconds between two rounds through more lanes than one look covers, if a round took no time to speak of."""
BUSY_FRESH = 0.1
"""Seconds that heads are believed at most while claims come back full and something has changed: a store that only
reports that a write happened does so all the time then, and mostly for writes of this node."""
UNSURE_FOR = 10.0
"""Seconds after a claim without an answer during which the store may still carry it out."""
UNSURE_PAUSE = 1.0
CONTENTION_PAUSE = 0.01
"""Seconds to wait when jobs are due but other nodes hold them all."""
SMALLEST_CHUNK = 8
MICROSECONDS = 1_000_000

Level = tuple[str, int, str | None]
"""A priority level of a queue, or of one of its lanes: queue, level, lane."""


class Look(NamedTuple):
    """Ask the store what is due."""


class ClaimDue(NamedTuple):
    """Claim up to `wanted` jobs, reading `chunk` rows of each head. Without heads nothing is asked of the store."""

    heads: list[Head]
    wanted: int
    chunk: int


class Pause(NamedTuple):
    """Wait for this time or until woken, then poll again."""

    seconds: float


class Rest(NamedTuple):
    """Wait as long as the polling strategy says, at most for this time."""

    at_most: float


class Poll(NamedTuple):
    """How far the present poll is; after it, how the last one ended."""

    wanted: int
    got: int | None = None
    """Jobs that the claim brought; None before it."""
    asked: frozenset[Level] = frozenset()
    """What the claim asked for."""
    looked: bool = False
    """Whether the store was looked at since the poll began or, once it has claimed, since the claim."""


class Outlook(NamedTuple):
    """What is known of claimable work and of the poll under way."""

    fresh: float
    """Seconds that what is known is believed; a paused queue is claimed from no longer than that."""
    started: float
    answer: Heads = Heads(0, [], frozenset())
    """The last answer of the store; circuits that changed since are noted in it."""
    answered_at: float = 0.0
    heads: Mapping[Level, int] = MappingProxyType({})
    """When each level is due, by the answer and what was reported since."""
    looked_at: float = float("-inf")
    """When the store was last asked."""
    stale: bool = False
    """Something has changed since then that only another look can find."""
    ended_during_look: bool = False
    """Jobs of other nodes have ended since then: the answer on its way may be older than what they released."""
    many_lanes: bool = False
    """One look does not cover all lanes."""
    lanes_since: float = 0.0
    """When the present round through the lanes began."""
    woken: bool = False
    """A notification has arrived since the last rest."""
    recent: tuple[tuple[int, int], ...] = ()
    """(wanted, got) of the last polls."""
    last_job: float | None = None
    """When a poll last brought a job."""
    widening: int = 1
    """By how much more is read of each level, because claims were cut short."""
    unsure_since: float | None = None
    """When a claim failed without an answer, as long as it may have been carried out."""
    poll: Poll | None = None

    # ------------------------------------------------------------------ what is known

    def store_now(self, now: float) -> int:
        """The time by the store's clock, about."""
        return self.answer.now + int((now - self.answered_at) * MICROSECONDS)

    def due(self, now: float) -> list[Head]:
        """Where jobs wait that are due."""
        store_now = self.store_now(now)
        return [Head(queue, level, due, lane) for (queue, level, lane), due in self.heads.items() if due <= store_now]

    @property
    def lanes_left(self) -> bool:
        """Whether the present round through the lanes has not come to its end."""
        return self.answer.after != FIRST_LANE

    @property
    def claims_full(self) -> bool:
        """Whether the last claim brought all it asked for."""
        return bool(self.recent) and self.recent[-1][0] == self.recent[-1][1]

    @property
    def wants_room(self) -> bool:
        """Whether the last poll claimed nothing because no slot was free."""
        return self.poll is not None and self.poll.wanted <= 0

    def observation(self, now: float, utilisation: float) -> PollObservation:
        """What the polling strategy decides on."""
        idle_for = now - (self.started if self.last_job is None else self.last_job)
        return PollObservation(recent=self.recent, idle_for=idle_for, utilisation=utilisation, woken=self.woken)

    # ------------------------------------------------------------------ what to do next

    def next_action(self, now: float) -> Look | ClaimDue | Pause | Rest:
        """What the poll under way does next."""
        poll = self.poll
        assert poll is not None, "no poll has begun"
        if poll.wanted <= 0:
            return Pause(UNSURE_PAUSE)  # a slot that frees up wakes sooner; an outcome that gets written does not
        if poll.got is None:
            too_old = now - self.looked_at > self._believed_for()
            return Look() if too_old and not poll.looked else self.claim(poll.wanted, now)
        if poll.got == poll.wanted:
            return Pause(0)
        return self._after_the_claim(poll, poll.got, now) if poll.looked else Look()

    def _after_the_claim(self, poll: Poll, got: int, now: float) -> Pause | Rest:
        if due := self.due(now):  # the claim was cut short, or other nodes hold these rows just now
            others = any(_level_of(head) not in poll.asked for head in due)
            return Pause(0) if got or others else Pause(CONTENTION_PAUSE)
        return Pause(0) if self.lanes_left else Rest(self._longest_rest(now))

    def claim(self, wanted: int, now: float) -> ClaimDue:
        """A claim of up to `wanted` of the jobs that are due."""
        heads = self.due(now)
        return ClaimDue(heads, wanted, self._chunk(len(heads), wanted))

    def _chunk(self, levels: int, wanted: int) -> int:
        """Rows to read of each level.

        All that is wanted of one or two, a share of many. Powers of two, for few statements.
        """
        share = wanted if levels <= 2 else max(SMALLEST_CHUNK, 2 * wanted // levels) * self.widening
        return 1 << (min(share, wanted) - 1).bit_length()

    def _believed_for(self) -> float:
        """How old what is known may get; a node whose claims come back full looks at further lanes soon."""
        if self.claims_full:
            return min(BUSY_FRESH, self.fresh) if self.stale or self.many_lanes else self.fresh
        return 0.0 if self.stale else self.fresh

    def _longest_rest(self, now: float) -> float:
        limits = [float("inf")]
        if self.unsure_since is not None:
            limits.append(UNSURE_PAUSE)
        if self.many_lanes:
            limits.append(max(LANES_REST, 10 * (now - self.lanes_since)))
        if self.heads:
            limits.append((min(self.heads.values()) - self.store_now(now)) / MICROSECONDS)
        return max(min(limits), 0.0)

    # ------------------------------------------------------------------ a poll

    def begin_poll(self, wanted: int) -> Outlook:
        """A poll begins, with room for so many jobs."""
        return self._replace(poll=Poll(wanted))

    def begin_look(self, now: float) -> Outlook:
        """The store is asked: whatever is reported from now on may be missing in its answer."""
        since = self.lanes_since if self.lanes_left else now
        return self._replace(looked_at=now, stale=False, ended_during_look=False, lanes_since=since)

    def after_look(self, found: Heads, now: float) -> Outlook:
        """The store has answered."""
        goes_on = self.lanes_left
        held = found.held or (self.answer.held and goes_on)
        seen = self._replace(
            answer=found._replace(held=held),
            answered_at=now,
            heads={_level_of(head): head.due_at for head in found.heads},
            many_lanes=goes_on or found.after != FIRST_LANE,
            poll=self.poll and self.poll._replace(looked=True),
        )
        if self.poll is not None and self.poll.got is not None:
            seen = seen._replace(widening=2 * self.widening if seen.due(now) else 1)
        return seen.jobs_ended() if self.ended_during_look else seen

    def after_claim(self, claim: ClaimDue, got: int, now: float) -> Outlook:
        """The claim brought so many jobs."""
        full = got == claim.wanted
        return self._replace(
            poll=Poll(claim.wanted, got, frozenset(map(_level_of, claim.heads))),
            recent=(*self.recent, (claim.wanted, got))[-WINDOW:],
            last_job=now if got else self.last_job,
            widening=1 if full else self.widening,
        )

    def rested(self) -> Outlook:
        """The polling strategy was asked: what woke the poller is used up."""
        return self._replace(woken=False)

    def from_first_lane(self) -> Outlook:
        """The next look begins a new round through the lanes."""
        return self._replace(answer=self.answer._replace(after=FIRST_LANE))

    # ------------------------------------------------------------------ claims without an answer

    def claim_failed(self, now: float) -> Outlook:
        """A claim has no answer: the store may have carried it out, or may do so yet."""
        return self._replace(unsure_since=now)

    def after_recovery(self, since: float, asked_at: float) -> Outlook:
        """Jobs of a claim that failed at `since` were looked for; late enough, that settles it."""
        settled = asked_at - since > UNSURE_FOR and self.unsure_since == since
        return self._replace(unsure_since=None) if settled else self

    # ------------------------------------------------------------------ what is reported

    def new_work(self, work: Iterable[tuple[str, int]], now: float) -> Outlook:
        """There is new work at these levels of queues, perhaps due now."""
        heads, stale, store_now = dict(self.heads), self.stale, self.store_now(now)
        for queue, level in work:
            if queue in self.answer.queues:
                key = (queue, level, None)
                heads[key] = min(heads.get(key, store_now), store_now)
                stale |= self.claims_full  # it may be in a lane, found by the next look
            else:
                stale = True  # a queue not seen before, or a paused one
        return self._replace(woken=True, stale=stale, heads=heads)

    def changed(self) -> Outlook:
        """Something unknown has changed."""
        return self._replace(woken=True, stale=True)

    def expect(self, expected: Iterable[Head]) -> Outlook:
        """Jobs of this node will be due then: retries, snoozes."""
        heads, stale = dict(self.heads), self.stale
        for head in expected:
            if head.queue in self.answer.queues:
                key = _level_of(head)
                heads[key] = min(heads.get(key, head.due_at), head.due_at)
            else:
                stale = True  # paused meanwhile, or not seen before
        return self._replace(stale=stale, heads=heads)

    def circuits_changed(self, changes: Iterable[CircuitChange]) -> Outlook:
        """Circuits opened or closed by what was written here."""
        shut = dict(self.answer.shut)
        for change in changes:
            shut.pop(change.service, None)
            if change.after.opens_at is not None:
                shut[change.service] = change.after.opens_at
        return self._replace(answer=self.answer._replace(shut=shut)).changed()

    def permits_freed(self, lanes: Iterable[tuple[str, str]], now: float) -> Outlook:
        """Jobs of these lanes, and perhaps of others behind the same gates, may be claimed now."""
        heads, store_now = dict(self.heads), self.store_now(now)
        for queue, lane in lanes:
            levels = [(queue, level, lane) for level in range(MAX_PRIORITY + 1)]
            heads.update({key: store_now for key in levels if key in heads})
        return self._replace(heads=heads, stale=self.stale or self.answer.held)

    def jobs_ended(self) -> Outlook:
        """Jobs ended on other nodes, and may have released what jobs wait for here."""
        return self.changed() if self.answer.held else self._replace(ended_during_look=True)

    def slot_freed(self) -> Outlook:
        """A slot is free again that the last poll lacked."""
        return self._replace(poll=None)


def _level_of(head: Head) -> Level:
    return head.queue, head.level, head.lane
