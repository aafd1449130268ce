"""Circuits: jobs behind an open one wait, and trials decide, on every store."""

from __future__ import annotations

from functools import partial

from windlass.domain.circuit import CircuitProfile, CircuitState, ServiceCall
from windlass.domain.job import Claim
from windlass.domain.lanes import CIRCUIT, RESOURCE, Lane
from windlass.domain.transition import released
from windlass.stores.plans import limits, permits
from windlass.testing.contract.gate_setup import GATEWAY, GatedContract
from windlass.testing.contract.workbench import SECOND, Workbench, at_once

BOTH = Lane(resource="stripe", circuit="gateway").text
FAST = CircuitProfile.FAST.value
REFUSED = ServiceCall(("builtins:ConnectionError", "builtins:OSError", "builtins:Exception"))


class CircuitsContract(GatedContract):
    """One state for the whole cluster, kept in the store."""

    def test_nothing_is_claimed_behind_an_open_circuit(self, bench: Workbench) -> None:
        """J6.1: it opens when enough calls failed, and is worth a look when its wait is over."""
        self._trip(bench)
        bench.put(5, lane=GATEWAY)
        assert bench.claim() == []
        (head,) = bench.heads().heads
        assert head.due_at == bench.clock.micros() + 10 * SECOND
        assert self._state(bench) is CircuitState.OPEN

    def test_trials_are_bounded_in_the_whole_cluster(self, bench: Workbench) -> None:
        """J6.1: half open, two go through however many nodes ask; two that went well close it."""
        self._trip(bench)
        bench.put(9, lane=GATEWAY)
        bench.clock.advance(10)
        bench.beat()
        trials = [claim for claims in at_once(*[partial(bench.claim, 5)] * 4) for claim in claims]
        assert len(trials) == 2
        assert self._state(bench) is CircuitState.HALF_OPEN
        self._ends(bench, *trials)
        assert self._state(bench) is CircuitState.CLOSED
        assert len(bench.claim()) == 7

    def test_a_failed_trial_opens_it_again(self, bench: Workbench) -> None:
        """J6.1: and the wait starts over."""
        self._trip(bench)
        bench.put(3, lane=GATEWAY)
        bench.clock.advance(10)
        trial, *_ = bench.claim()
        self._ends(bench, trial, raised=REFUSED.raised)
        assert self._state(bench) is CircuitState.OPEN
        assert bench.claim() == []

    def test_a_trial_without_an_outcome_lets_another_one_through(self, bench: Workbench) -> None:
        """J6.1: released, snoozed or lost with its node, it releases its permit."""
        self._trip(bench)
        bench.put(3, lane=GATEWAY)
        bench.clock.advance(10)
        trials = bench.claim()
        assert bench.claim() == []
        assert all(bench.apply(*[released(trial, bench.times()) for trial in trials]))
        assert len(bench.claim()) == 2

    def test_a_trial_that_hangs_past_its_timeout_lets_another_one_through(self, bench: Workbench) -> None:
        """J6.1: a service that hangs must not use up the trials that would find it back; its permit it keeps."""
        self._resource(bench, cap=9)
        self._trip(bench)
        bench.put(9, lane=BOTH)
        bench.clock.advance(10)
        trials = bench.claim()
        assert len(trials) == 2
        bench.apply(*[released(trial, bench.times())._replace(lingers=True) for trial in trials])
        assert len(bench.claim()) == 2
        assert self._in_use(bench, RESOURCE) == 4

    def test_fewer_trials_while_it_is_half_open_do_not_block_it(self, bench: Workbench) -> None:
        """J6.1: a deploy may configure it at any moment; trials then start over."""
        bench.database.run(limits.configure_circuit, "gateway", CircuitProfile.CRITICAL.with_changes(minimum_calls=3))
        bench.database.run(limits.record_calls, {"gateway": [REFUSED] * 3})
        bench.put(9, lane=GATEWAY)
        bench.clock.advance(60)
        bench.beat()
        self._ends(bench, *bench.claim(1))
        bench.database.run(limits.configure_circuit, "gateway", CircuitProfile.DEFAULT.with_changes(trials=1))
        (last,) = bench.claim()
        self._ends(bench, last)
        assert self._state(bench) is CircuitState.CLOSED

    def test_jobs_claimed_before_it_opened_do_not_close_a_circuit(self, bench: Workbench) -> None:
        """J6.1: only trials decide."""
        bench.put(3, lane=GATEWAY)
        before = bench.claim()
        self._trip(bench)
        bench.clock.advance(10)
        self._ends(bench, *before)
        assert self._state(bench) is CircuitState.HALF_OPEN

    def test_a_circuit_is_opened_and_closed_manually(self, bench: Workbench) -> None:
        """J6.1: held open for as long as it takes, whatever calls say; closed and reset."""
        bench.put(lane=GATEWAY)
        bench.database.run(limits.steer_circuit, "gateway", lambda circuit, now: circuit.opened_by_hand(now))
        bench.clock.advance(100_000)
        bench.beat()
        bench.database.run(limits.record_calls, {"gateway": [ServiceCall(trial=True)] * 9})
        assert self._state(bench) is CircuitState.OPEN
        assert bench.claim() == []
        bench.database.run(limits.steer_circuit, "gateway", lambda circuit, now: circuit.closed())
        assert len(bench.claim()) == 1

    def test_calls_of_several_nodes_all_count_for_a_circuit(self, bench: Workbench) -> None:
        """J6.1: state is shared by all nodes; calls recorded at the same moment all count."""
        settings = CircuitProfile.DEFAULT.with_changes(window=1000, minimum_calls=1000)
        bench.database.run(limits.configure_circuit, "gateway", settings)
        teach = partial(bench.database.run, limits.record_calls, {"gateway": [ServiceCall()] * 5})
        at_once(*[teach] * 8)
        (row,) = bench.database.read(limits.gates, CIRCUIT)
        assert row.circuit is not None
        assert len(row.circuit.calls) == 40

    def test_a_job_behind_two_gates_waits_for_both(self, bench: Workbench) -> None:
        """J3.4: an open circuit takes no permit of the resource either."""
        self._resource(bench, cap=2)
        self._trip(bench)
        bench.put(4, lane=BOTH)
        assert bench.claim() == []
        assert self._in_use(bench, RESOURCE) == 0
        bench.clock.advance(10)
        assert len(bench.claim()) == 2

    def _trip(self, bench: Workbench) -> None:
        bench.database.run(limits.configure_circuit, "gateway", FAST)
        (change,) = bench.database.run(limits.record_calls, {"gateway": [REFUSED] * 3})
        assert change.opened

    def _ends(self, bench: Workbench, *claims: Claim, raised: tuple[str, ...] = ()) -> None:
        """Record the end of bodies in their circuit."""
        for claim in claims:
            assert bench.succeed(claim)
            trial = CIRCUIT + "gateway" in permits.held_gates(claim.holds)
            bench.database.run(limits.record_calls, {"gateway": [ServiceCall(raised, trial)]})

    def _state(self, bench: Workbench) -> CircuitState:
        return bench.database.read(limits.circuit_state, "gateway")
