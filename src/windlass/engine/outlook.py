"""What a node knows of claimable work, and what its poller does next: a pure value.

A poll queries the store if what is known is too old, claims due jobs for the free slots, queries again unless the claim
returned all it asked for, and waits. Events meanwhile change the same value: a notification, a released permit, a free
slot. Times are seconds of the process's monotonic clock; due times are the store's, in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from windlass.domain.circuit import CircuitChange
from windlass.domain.clock import MICROSECONDS
from windlass.domain.job import Claim
from windlass.domain.poll_interval import WINDOW, PollObservation
from windlass.domain.priority import MAX_PRIORITY
from windlass.engine.arrivals import Arrivals
from windlass.engine.claim_reach import ClaimReach, choose, is_cut, level_of
from windlass.engine.low_water import LowWater
from windlass.engine.poll_steps import ClaimDue, Level, Look, Pause, Poll, Rest
from windlass.stores.claim_order import Head
from windlass.stores.plans.queues import FIRST_LANE, Heads

LANES_REST = 1.0
"""Seconds between two rounds through more lanes than one query covers, if a round takes hardly any time."""
BUSY_FRESH = 0.1
"""Longest time in seconds that heads are used while claims follow each other and something has changed.

A store that only reports that a write happened does so all the time then, and mostly for writes of this node.
"""
CLAIM_IN_DOUBT_FOR = 10.0
"""Seconds after a claim without an answer during which the store may still carry it out."""
CLAIM_IN_DOUBT_PAUSE = 1.0
CONTENTION_PAUSE = 0.01
"""Seconds to wait when jobs are due but other nodes have locked all of them."""


class Outlook(NamedTuple):
    """What is known of claimable work and of the current poll."""

    fresh: float
    """Seconds for which known state is used; a paused queue is claimed from no longer than that."""
    started: float
    boost_us: int = 0
    """Microseconds of waiting that raise a job's priority by one; 0: none do."""
    answer: Heads = Heads(0, [], frozenset())
    """The last answer of the store; circuits that changed since are updated in it."""
    answered_at: float = 0.0
    heads: Mapping[Level, int] = MappingProxyType({})
    """When each level is due, by the answer and by reports since."""
    looked_at: float = float("-inf")
    """When the store was last queried."""
    stale: bool = False
    """Whether something has changed since then that only another query can find."""
    ended_during_look: bool = False
    """Whether jobs of other nodes have ended since: the answer may be older than the permits they released."""
    changed_circuits: Mapping[str, CircuitChange] = MappingProxyType({})
    """Circuits that have changed since: the answer may be older."""
    many_lanes: bool = False
    """Whether one query does not cover all lanes."""
    lanes_since: float = 0.0
    """When the current round through the lanes began."""
    woken: bool = False
    """A notification has arrived since the last rest."""
    recent: tuple[tuple[int, int], ...] = ()
    """(wanted, got) of the last polls, except empty ones in a steady stream."""
    last_job: float | None = None
    """When a poll last returned a job."""
    reach: ClaimReach = ClaimReach()
    busy: bool = False
    """Whether the last claim returned all it asked for, or all that it read of a level: another follows at once."""
    claim_in_doubt_since: float | None = None
    """When a claim failed without an answer, as long as it may still have been carried out."""
    poll: Poll | None = None
    low_water: LowWater = LowWater()
    arrivals: Arrivals = Arrivals()

    # ------------------------------------------------------------------ what is known

    def store_now(self, now: float) -> int:
        """Return the approximate time of the store's clock."""
        return self.answer.now + int((now - self.answered_at) * MICROSECONDS)

    def due(self, now: float) -> list[Head]:
        """Return the heads with due jobs."""
        store_now, starts = self.store_now(now), self.low_water.starts
        return [
            Head(queue, level, due, lane, starts.get((queue, level)) if lane is None else None)
            for (queue, level, lane), due in self.heads.items()
            if due <= store_now
        ]

    @property
    def lanes_remain(self) -> bool:
        """Whether the current round through the lanes has not ended."""
        return self.answer.after != FIRST_LANE

    @property
    def wants_room(self) -> bool:
        """Whether the last poll claimed nothing because no slot was free."""
        return self.poll is not None and self.poll.wanted <= 0

    def observation(self, now: float, utilisation: float) -> PollObservation:
        """Return the input of the polling strategy."""
        idle_for = now - (self.started if self.last_job is None else self.last_job)
        return PollObservation(recent=self.recent, idle_for=idle_for, utilisation=utilisation, woken=self.woken)

    # ------------------------------------------------------------------ what to do next

    def next_action(self, now: float) -> Look | ClaimDue | Pause | Rest:
        """Return what the current poll does next."""
        poll = self.poll
        assert poll is not None, "no poll has begun"
        if poll.wanted <= 0:
            return Pause(CLAIM_IN_DOUBT_PAUSE)  # a free slot wakes the poller sooner; a written outcome does not
        if poll.got is None:
            too_old = now - self.looked_at > self._believed_for() or (self.busy and self.low_water.overdue(now))
            return Look() if too_old and not poll.looked else self.claim(poll.wanted, now)
        if poll.got == poll.wanted or poll.cut:
            return Pause(0)
        return self._after_the_claim(poll, poll.got, now) if poll.looked else Look()

    def _after_the_claim(self, poll: Poll, got: int, now: float) -> Pause | Rest:
        if due := self.due(now):  # the claim was cut short, or other nodes hold these rows just now
            others = any(level_of(head) not in poll.asked for head in due)
            return Pause(0) if got or others else Pause(CONTENTION_PAUSE)
        return Pause(0) if self.lanes_remain else Rest(self._longest_rest(now))

    def claim(self, wanted: int, now: float) -> ClaimDue:
        """Return a claim of up to `wanted` of the due jobs."""
        heads, others, tiers = choose(
            self.due(now), self.answer.limited, self.reach.tiers, self.store_now(now), self.boost_us
        )
        return ClaimDue(heads, wanted, self.reach.chunk(len(heads), wanted), others, tiers)

    def _believed_for(self) -> float:
        """Return how old known state may get; a node whose claims follow each other checks further lanes soon."""
        if self.busy:
            return min(BUSY_FRESH, self.fresh) if self.stale or self.many_lanes else self.fresh
        return 0.0 if self.stale else self.fresh

    def _longest_rest(self, now: float) -> float:
        limits = [self.low_water.rest(now)]
        if self.arrivals.steady(now):
            limits.append(self.arrivals.gap)
        if self.claim_in_doubt_since is not None:
            limits.append(CLAIM_IN_DOUBT_PAUSE)
        if self.many_lanes:
            limits.append(max(LANES_REST, 10 * (now - self.lanes_since)))
        if self.heads:
            limits.append((min(self.heads.values()) - self.store_now(now)) / MICROSECONDS)
        return max(min(limits), 0.0)

    # ------------------------------------------------------------------ a poll

    def begin_poll(self, wanted: int, now: float) -> Outlook:
        """Begin a poll, with room for so many jobs. In a steady stream the next one is taken to be there."""
        begun = self._replace(poll=Poll(wanted))
        if not self.arrivals.steady(now) or self.busy:
            return begun
        store_now = self.store_now(now)
        levels: list[Level] = [(*level, None) for level in self.arrivals.levels if level[0] in self.answer.queues]
        known = {level: min(self.heads.get(level, store_now), store_now) for level in levels}
        return begun._replace(heads={**self.heads, **known})

    def begin_look(self, now: float) -> Outlook:
        """Begin a query: what is reported from now on may be missing in its answer."""
        since = self.lanes_since if self.lanes_remain else now
        hurry = self.poll is not None and self.poll.got is None and not self.busy and bool(self.due(now))
        return self._replace(
            looked_at=now,
            stale=False,
            ended_during_look=False,
            changed_circuits=MappingProxyType({}),
            lanes_since=since,
            low_water=self.low_water.begin_look(now, hurry=hurry),
        )

    def after_look(self, found: Heads, now: float) -> Outlook:
        """Take the store's answer."""
        goes_on = self.lanes_remain
        held = found.held or (self.answer.held and goes_on)
        seen = self._replace(
            answer=found._replace(held=held, shut=_after(self.changed_circuits.values(), found.shut)),
            answered_at=now,
            heads={level_of(head): head.due_at for head in found.heads},
            many_lanes=goes_on or found.after != FIRST_LANE,
            poll=self.poll and self.poll._replace(looked=True),
            low_water=self.low_water.after_look(found.heads, found.walked, found.now),
        )
        if self.poll is not None and self.poll.got is not None:
            seen = seen._replace(reach=self.reach.after_look(due=bool(seen.due(now))))
        return seen.jobs_ended() if self.ended_during_look else seen

    def after_claim(self, claim: ClaimDue, jobs: Sequence[Claim], now: float, *, marks: bool = False) -> Outlook:
        """Record the jobs that the claim returned, and where the next one begins to read if it is to begin at marks."""
        got = len(jobs)
        full = got == claim.wanted
        cut = not full and is_cut(jobs, claim.chunk)
        guessed = not got and not self.busy and self.arrivals.steady(now)  # a poll that the strategy did not ask for
        return self._replace(
            low_water=self.low_water.after_claim(jobs, self.store_now(now)) if jobs and marks else self.low_water,
            poll=Poll(claim.wanted, got, frozenset(map(level_of, claim.heads)), cut),
            arrivals=self.arrivals if full or cut else self.arrivals.after_claim(jobs, now),
            recent=self.recent if guessed else (*self.recent, (claim.wanted, got))[-WINDOW:],
            last_job=now if got else self.last_job,
            reach=self.reach.after_claim(claim, jobs, cut=cut),
            busy=full or cut,
        )

    def rested(self) -> Outlook:
        """Reset what woke the poller: the polling strategy has used it."""
        return self._replace(woken=False)

    def from_first_lane(self) -> Outlook:
        """Begin a new round through the lanes, and with the first entry of each level, with the next query."""
        return self._replace(answer=self.answer._replace(after=FIRST_LANE), low_water=self.low_water.forget())

    # ------------------------------------------------------------------ claims without an answer

    def claim_failed(self, now: float) -> Outlook:
        """Record a claim without an answer: the store may have carried it out, or may do so yet."""
        return self._replace(claim_in_doubt_since=now)

    def after_recovery(self, since: float, asked_at: float) -> Outlook:
        """Record a search for the jobs of a claim that failed at `since`; late enough, it settles the doubt."""
        settled = asked_at - since > CLAIM_IN_DOUBT_FOR and self.claim_in_doubt_since == since
        return self._replace(claim_in_doubt_since=None) if settled else self

    # ------------------------------------------------------------------ what is reported

    def new_work(self, work: Iterable[tuple[str, int]], now: float) -> Outlook:
        """Record new work at these levels of queues, perhaps due now."""
        heads, stale, store_now = dict(self.heads), self.stale, self.store_now(now)
        for queue, level in work:
            if queue in self.answer.queues:
                key = (queue, level, None)
                heads[key] = min(heads.get(key, store_now), store_now)
                stale |= self.busy  # it may be in a lane, found by the next look
            else:
                stale = True  # a queue not seen before, or a paused one
        return self._replace(woken=True, stale=stale, heads=heads)

    def changed(self) -> Outlook:
        """Record that something unknown has changed."""
        return self._replace(woken=True, stale=True, low_water=self.low_water.forget())

    def expect(self, expected: Iterable[Head]) -> Outlook:
        """Record when jobs of this node will be due: retries, snoozes."""
        expected = list(expected)
        heads, stale = dict(self.heads), self.stale
        for head in expected:
            if head.queue in self.answer.queues:
                key = level_of(head)
                heads[key] = min(heads.get(key, head.due_at), head.due_at)
            else:
                stale = True  # paused meanwhile, or not seen before
        return self._replace(stale=stale, heads=heads, low_water=self.low_water.expect(expected))

    def circuits_changed(self, changes: Iterable[CircuitChange]) -> Outlook:
        """Record circuits that opened or closed by writes of this node."""
        latest = {change.service: change for change in changes}
        answer = self.answer._replace(shut=_after(latest.values(), self.answer.shut))
        return self._replace(answer=answer, changed_circuits={**self.changed_circuits, **latest}).changed()

    def permits_freed(self, lanes: Iterable[tuple[str, str]], now: float) -> Outlook:
        """Record that jobs of these lanes, and perhaps of others behind the same gates, may be claimed now."""
        heads, store_now = dict(self.heads), self.store_now(now)
        for queue, lane in lanes:
            levels = [(queue, level, lane) for level in range(MAX_PRIORITY + 1)]
            heads.update({key: store_now for key in levels if key in heads})
        return self._replace(heads=heads, stale=self.stale or self.answer.held)

    def jobs_ended(self) -> Outlook:
        """Record that jobs ended on other nodes, and may have released permits that jobs wait for here."""
        return self.changed() if self.answer.held else self._replace(ended_during_look=True)

    def slot_freed(self) -> Outlook:
        """Record that a slot is free which the last poll lacked."""
        return self._replace(poll=None)


def _after(changes: Iterable[CircuitChange], shut: Mapping[str, int]) -> dict[str, int]:
    """Return which circuits are shut, and until when, after these changes."""
    after = dict(shut)
    for change in changes:
        after.pop(change.service, None)
        if change.after.opens_at is not None:
            after[change.service] = change.after.opens_at
    return after
