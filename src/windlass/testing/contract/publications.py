"""Publications: rows and admissions in one transaction, keys, room, the backlog."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from windlass.domain.execution import NewExecution
from windlass.domain.identity import LAST_ID, new_job_id
from windlass.domain.publication import PIPELINE, REMOTE, SubscriptionRow
from windlass.stores.plans import handoff_backlog, handoffs, subscriptions
from windlass.stores.plans.execution_submissions import NewSubmission
from windlass.stores.plans.handoffs import AdmittedItem, Published, PublishedItem, PublishedItems
from windlass.testing.contract.workbench import StoreContract, Workbench, at_once, new_job

INVOICES = "invoices"
RACERS = 4


def billing(most: int | None = None) -> SubscriptionRow:
    """Return the subscription of a pipeline of this process."""
    return SubscriptionRow(INVOICES, "billing", PIPELINE, most)


def admitted(key: str, payload: str = "1", tenant: str = "default") -> AdmittedItem:
    """Return the execution that an item becomes."""
    handoff, execution = new_job_id(), new_job_id()
    facts = (execution, tenant, "billing", "1", "hash", key, payload, 1, handoff)
    job = new_job(id=execution, target="pipeline/billing@1#hash", correlation_id="c")
    return AdmittedItem(handoff, NewSubmission(NewExecution(*facts), job))


def item(key: str, payload: str = "1", *, refusal: str | None = None, known: bool = True) -> PublishedItem:
    """Return an item that billing takes, if it is known here."""
    admission = AdmittedItem(new_job_id(), None, refusal) if refusal else admitted(key, payload)
    return PublishedItem(key, "0", payload, payload, {"billing": admission} if known else {})


def batch(items: Sequence[PublishedItem], *known: SubscriptionRow) -> PublishedItems:
    """Return items of one execution."""
    return PublishedItems(INVOICES, "default", new_job_id(), "c", items, known)


class PublicationsContract(StoreContract):
    """What is handed over, once for each key, and what waits."""

    def publish(self, bench: Workbench, items: Sequence[PublishedItem], *known: SubscriptionRow) -> Published:
        """Hand items over in a transaction of their own."""
        return bench.database.run(handoffs.publish, [batch(items, *known)])

    def open_executions(self, bench: Workbench) -> int:
        """Return how many executions of billing are open."""
        return bench.database.read(lambda dialect: handoffs.free("billing", 1_000)) - 1_000

    def waiting(self, bench: Workbench) -> dict[str, int]:
        """Return how many hand-offs wait, by subscriber."""
        return {one.subscription.subscriber: one.waiting for one in bench.database.read(subscriptions.backlog)}

    @pytest.mark.parametrize("count", [1, 3, 120])
    def test_items_become_executions_in_the_transaction_that_publishes_them(self, bench: Workbench, count: int) -> None:
        """P7.1: with their jobs, which are due at once."""
        published = self.publish(bench, [item(f"k{n}") for n in range(count)], billing())
        assert (len(set(published.admitted)), published.waiting, published.suppressed) == (count, 0, 0)
        assert published.work == {("default", 2)}
        assert self.open_executions(bench) == -count
        assert len(bench.claim()) == count

    def test_a_repeated_key_is_suppressed_and_one_with_another_payload_rejected(self, bench: Workbench) -> None:
        """P7.2: also within one transaction; both are counted, and run nothing."""
        first = self.publish(bench, [item("a"), item("a"), item("b")], billing())
        assert (len(first.admitted), first.suppressed) == (3, 1)
        again = self.publish(bench, [item("a"), item("b", "2"), item("c")], billing())
        assert (again.suppressed, again.rejected, len(again.failures)) == (1, 1, 1)
        assert set(again.admitted) > {first.admitted[0]}
        assert self.open_executions(bench) == -3
        (counted, before) = bench.database.read(subscriptions.counts)
        assert before == {}
        assert counted[INVOICES, "billing"][:4] == (3, 2, 1, 0)

    def test_a_key_of_another_tenant_or_subscriber_is_another_key(self, bench: Workbench) -> None:
        """P7.2: unique for publication, subscriber and tenant."""
        audit = SubscriptionRow(INVOICES, "audit", REMOTE)
        self.publish(bench, [item("a")], billing())
        published = self.publish(bench, [item("a", "2")], audit, billing())
        assert (published.waiting, published.rejected, set(published.remote)) == (1, 1, {(INVOICES, "audit")})
        assert self.waiting(bench) == {"audit": 1}

    def test_publishers_at_once_hand_a_key_over_once(self, bench: Workbench) -> None:
        """P7.2: by the first one; the others are duplicates."""
        found = at_once(*[partial(self.publish, bench, [item(f"k{n}") for n in order], billing()) for order in ORDERS])
        assert sum(one.suppressed for one in found) == (RACERS - 1) * 3
        assert self.open_executions(bench) == -3

    def test_a_subscriber_admits_no_more_than_it_may_have_open(self, bench: Workbench) -> None:
        """P7.2: publishers at once count the same room once; what waits goes first."""
        bench.database.run(subscriptions.register, [(billing(2), "{}")], ["billing"])
        found = at_once(*[partial(self.publish, bench, [item(f"r{racer}")], billing(2)) for racer in range(RACERS)])
        assert sum(len(one.admitted) for one in found) == 2
        assert self.waiting(bench) == {"billing": RACERS - 2}
        assert self.admit(bench, billing(2)).admitted == ()

    def test_a_paused_subscriber_gets_what_waits_when_it_is_resumed(self, bench: Workbench) -> None:
        """P7.2: in the order in which it came, and without a payload once it is settled."""
        bench.database.run(subscriptions.register, [(billing(), "{}")], ["billing"])
        assert bench.database.run(subscriptions.pause, INVOICES, "billing", paused=True)
        assert self.publish(bench, [item("a"), item("b")], billing()).waiting == 2
        assert not self.look(bench).ready
        assert self.admit(bench, billing()) == handoffs.NOTHING_PUBLISHED
        assert bench.database.run(subscriptions.pause, INVOICES, "billing", paused=False)
        assert self.look(bench).ready
        bench.clock.advance(7)
        assert len(self.admit(bench, billing()).admitted) == 2
        (counted, _) = bench.database.read(subscriptions.counts)
        assert counted[INVOICES, "billing"][4:] == (14_000_000, 2, 2)
        assert self.look(bench).due_us is None
        assert not bench.database.run(subscriptions.pause, INVOICES, "nobody", paused=True)

    def test_a_refused_item_waits_for_its_next_try_and_holds_up_no_other(self, bench: Workbench) -> None:
        """P7.2: with its reason, after 1 s, then 2 s."""
        published = self.publish(bench, [item("a", refusal="no"), item("b")], billing())
        assert ([one.reason for one in published.failures], len(published.admitted)) == (["no"], 1)
        assert self.look(bench).due_us == 1_000_000
        bench.clock.advance(1)
        (one,) = self.due(bench)
        refused = AdmittedItem(one.id, None, "still no")
        bench.database.run(handoff_backlog.admit_waiting, billing(), [(one, refused)])
        assert self.look(bench).due_us == 2_000_000
        failing = partial(subscriptions.find, before=LAST_ID, window=10, scope=subscriptions.Scope.FAILING)
        (found,) = bench.database.read(failing)
        assert (found.attempts, found.reason, found.status) == (2, "still no", "WAITING")
        assert bench.database.run(subscriptions.hurry, [found.id]) == 1
        assert len(self.admit(bench, billing()).admitted) == 1
        assert bench.database.read(failing) == []

    def test_a_subscriber_of_another_process_has_rows_that_wait(self, bench: Workbench) -> None:
        """P7.1: what only the store knows; one that no longer subscribes gets nothing."""
        bench.database.run(subscriptions.register, [(billing(), "{}")], ["billing"])
        assert self.publish(bench, [item("a", known=False)]).waiting == 1
        assert len(self.admit(bench, billing()).admitted) == 1
        bench.database.run(subscriptions.register, [], ["billing"])
        assert self.publish(bench, [item("b", known=False)]) == handoffs.NOTHING_PUBLISHED

    def test_settled_hand_offs_are_purged_and_waiting_ones_stay(self, bench: Workbench) -> None:
        """P7.2: their keys are free again after that."""
        self.publish(bench, [item("a"), item("b", refusal="no")], billing())
        bench.clock.advance(100)
        assert bench.database.run(subscriptions.purge, 200_000_000, 500).jobs == 0
        assert bench.database.run(subscriptions.purge, 50_000_000, 500).jobs == 1
        assert self.waiting(bench) == {"billing": 1}

    def test_counts_are_added_up_and_stay_the_same(self, bench: Workbench) -> None:
        """P7.3: by minute; those of a day ago are deleted."""
        for key in "abc":
            self.publish(bench, [item(key)], billing())
        before = bench.database.read(subscriptions.counts)
        assert bench.database.run(subscriptions.fold_counts) is False
        assert bench.database.read(subscriptions.counts) == before
        bench.clock.advance(25 * 3_600)
        bench.database.run(subscriptions.fold_counts)
        assert bench.database.read(subscriptions.counts) == ({}, {})

    # ------------------------------------------------------------------ the backlog

    def look(self, bench: Workbench) -> handoff_backlog.BacklogLook:
        """Return what waits for billing."""
        subscription = (INVOICES, "billing")
        return bench.database.read(handoff_backlog.look, [subscription])[subscription]

    def due(self, bench: Workbench) -> list[handoff_backlog.WaitingHandoff]:
        """Return what is due for billing."""
        return bench.database.read(handoff_backlog.due, INVOICES, "billing", 100)

    def admit(self, bench: Workbench, subscription: SubscriptionRow) -> Published:
        """Admit what is due for billing."""
        waiting = [(one, admitted(one.key, one.payload)._replace(handoff_id=one.id)) for one in self.due(bench)]
        return bench.database.run(handoff_backlog.admit_waiting, subscription, waiting)


ORDERS = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1))
