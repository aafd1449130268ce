"""Claims that assume free permits at gates, on every store: the assumption is checked."""

from __future__ import annotations

import threading

import pytest

from windlass.domain.lanes import QUEUE, RESOURCE, Lane
from windlass.domain.transition import succeeded
from windlass.stores.claim_order import ClaimRequest, Trust
from windlass.stores.dialect import Claimed
from windlass.stores.plans import claims, limits, queues
from windlass.stores.plans.limits import Limit
from windlass.testing.contract.gate_setup import STRIPE, GatedContract
from windlass.testing.contract.workbench import NODE, Workbench

CLAIMERS = 8
CAP = 60
EACH = 5


class TrustedClaimsContract(GatedContract):
    """A gate with plenty of room is not waited for, and never lets through one too many."""

    def test_gates_with_room_for_much_more_are_trusted_next_time(self, bench: Workbench) -> None:
        """J3.4: those with little room, and those never asked for, are not."""
        self._limit(bench, "mail", cap=20)
        bench.put(30, queue="mail")
        first = self._claim(bench, EACH)
        assert first.trust == Trust(frozenset({"queue:mail"}), frozenset({"queue:mail"}))
        second = self._claim(bench, EACH, first.trust)
        assert (len(second.claims), second.trust) == (EACH, first.trust)
        third = self._claim(bench, EACH, second.trust)
        assert (len(third.claims), third.trust) == (EACH, None)
        assert self._in_use(bench, QUEUE) == 3 * EACH

    def test_trusting_claims_hold_the_same_permits_as_others(self, bench: Workbench) -> None:
        """J6.2, J1.7: and release them at their end."""
        self._resource(bench, cap=1000)
        self._limit(bench, "mail", cap=1000)
        bench.put(9, queue="mail", lane=STRIPE)
        looked = self._claim(bench, 3)
        trusted = self._claim(bench, 3, looked.trust)
        assert {claim.holds for claim in looked.claims} == {claim.holds for claim in trusted.claims}
        assert self._in_use(bench, QUEUE) == self._in_use(bench, RESOURCE) == 6
        for claim in (*looked.claims, *trusted.claims):
            assert bench.apply(succeeded(claim, bench.times(), None, holds_key=False)) == [True]
        assert self._in_use(bench, QUEUE) == self._in_use(bench, RESOURCE) == 0

    def test_a_gate_that_has_become_narrow_is_detected_and_nothing_is_claimed(self, bench: Workbench) -> None:
        """J1.7: changed while running; the claim that trusted the old limit is as if it had never been."""
        self._limit(bench, "mail", cap=100)
        bench.put(30, queue="mail")
        trust = self._claim(bench, EACH).trust
        self._limit(bench, "mail", cap=EACH + 2)
        with pytest.raises(claims.TrustError):
            self._claim(bench, EACH, trust)
        assert self._in_use(bench, QUEUE) == EACH
        assert len(self._claim(bench, EACH).claims) == 2

    def test_a_rate_is_kept_by_trusting_claims(self, bench: Workbench) -> None:
        """J1.7: they count for it, too."""
        bench.database.run(limits.limit_queue, "mail", Limit(None, 20, 1_000_000))
        bench.put(40, queue="mail")
        trust, passed = None, 0
        for _ in range(4):
            claimed = self._claim(bench, EACH, trust)
            trust, passed = claimed.trust, passed + len(claimed.claims)
        assert (passed, self._claim(bench, EACH).claims) == (20, [])

    def test_a_circuit_that_opened_meanwhile_lets_nothing_through(self, bench: Workbench) -> None:
        """J6.1: although it did not even count when it was looked at."""
        bench.put(10, lane=Lane(circuit="gateway").text)
        trust = self._claim(bench, 2).trust
        assert trust is not None
        bench.database.run(limits.steer_circuit, "gateway", lambda circuit, now: circuit.opened(now))
        with pytest.raises(claims.TrustError):
            self._claim(bench, 2, trust)
        assert self._claim(bench, 2).claims == []

    def test_a_missing_resource_is_checked_again_by_the_next_claim(self, bench: Workbench) -> None:
        """J6.2: once it is there its jobs need a permit, and the key's gate is still to be made."""
        bench.put(4, lane=Lane(resource="stripe", resource_key="acme").text)
        assert self._claim(bench, 2).trust is None
        self._resource(bench, cap=1)
        assert [claim.holds for claim in self._claim(bench, 2).claims] == ['["resource:stripe/acme"]']

    def test_a_limit_that_was_lifted_meanwhile_is_detected(self, bench: Workbench) -> None:
        """J1.7: no job holds a permit of a gate that does not count."""
        self._limit(bench, "mail", cap=100)
        bench.put(30, queue="mail")
        before = bench.heads()
        trust = self._claim(bench, EACH).trust
        self._limit(bench, "mail", cap=None)
        with pytest.raises(claims.TrustError):
            self._claim(bench, EACH, trust, before)
        assert {claim.holds for claim in self._claim(bench, EACH).claims} == {None}

    def test_eight_concurrent_trusting_claims_never_exceed_a_limit(self, bench: Workbench) -> None:
        """J1.7, J6.2: a claim that trusted too much checks the gate and takes what is left."""
        self._limit(bench, "mail", cap=CAP)
        bench.put(CAP + 20, queue="mail")
        found = bench.heads()
        counts: list[int] = []

        def claim_all() -> None:
            trust: Trust | None = None
            for turn in range(1, CAP):
                request = ClaimRequest(NODE, found.heads, EACH, 8, 0, found.limited, turn, trust)
                try:
                    claimed = bench.database.run(claims.claim, request)
                except claims.TrustError:
                    claimed = bench.database.run(claims.claim, request._replace(trust=None))
                trust = claimed.trust
                counts.append(len(claimed.claims))

        claimers = [threading.Thread(target=claim_all) for _ in range(CLAIMERS)]
        for claimer in claimers:
            claimer.start()
        for claimer in claimers:
            claimer.join()
        assert sum(counts) == self._in_use(bench, QUEUE) == CAP

    def _claim(
        self, bench: Workbench, wanted: int, trust: Trust | None = None, known: queues.Heads | None = None
    ) -> Claimed:
        found = known or bench.heads()
        request = ClaimRequest(NODE, found.heads, wanted, 1000, 0, found.limited, turn=1, trust=trust)
        return bench.database.run(claims.claim, request)
