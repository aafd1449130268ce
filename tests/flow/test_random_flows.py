"""Random flows and batches, with failures, cancels, pauses, signals and retries, end as a simple recursion predicts."""

from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.engine.apps import Apps
from tests.flow import flow_bodies
from tests.flow.flow_bodies import Jobs, all_jobs
from tests.flow.flow_builder import Builder
from tests.flow.flow_model import Author, Batch, Graph, Step, World, batches_of, in_cancel_order, steps_of, whole
from tests.flow.flow_reference import BY_USER, predict
from tests.support.flow_invariants import check_settled_flows
from windlass import Windlass
from windlass.domain.clock import VirtualClock
from windlass.testing import drain

LIVE = {"PENDING", "RUNNING", "WAITING", "PAUSED"}
TIMEOUT = 60
PREDICATES = {"yes": flow_bodies.says_yes, "no": flow_bodies.says_no, "raises": flow_bodies.raises}


class Story:
    """One flow or batch in one world."""

    def __init__(self, app: Windlass, clock: VirtualClock, graph: Graph, world: World, random: Random) -> None:
        self._app, self._clock, self._graph, self._world, self._random = app, clock, graph, world, random
        flow_bodies.BROKEN.update(world.broken)
        flow_bodies.FLAKY.update(world.flaky)
        flow_bodies.LOADS.update(
            {step.name: partial(self._load, step.loads) for step in steps_of(graph) if step.loads is not None}
        )
        self._jobs = Jobs(app)
        self._builder = Builder(self._call, PREDICATES)
        if isinstance(graph, Batch):
            self._load(graph)
        else:
            self._builder.flow(graph).enqueue()
        self._ids: dict[str, UUID] = {}

    def _load(self, batch: Batch) -> None:
        flaky = any(child.name in self._world.flaky for child in batch.children)
        self._builder.batch(self._app, batch, self._jobs.step.using(max_retries=1 if flaky else 0)).enqueue()

    def _call(self, step: Step) -> Any:
        call: Any = self._jobs.step.using(max_retries=1 if step.name in self._world.flaky else 0).bind(step.name)
        return call.await_signal(f"go {step.name}", timeout=TIMEOUT) if step.waits else call

    def play(self) -> None:
        """Cancel and pause, and run what there is to run."""
        self.ends()
        for name in in_cancel_order(self._graph, self._world.canceled, self._ids):
            canceled = self._app.cancel(self._ids[name])
            assert canceled or name == whole(self._graph), "what follows a step is canceled with it, so it was first"
        for name in self._in_any_order(self._world.paused):
            self._app.pause(self._ids[name])
        self._signal([name for name in sorted(self._world.waiting) if self._random.random() < 0.5])
        self._settle()

    def retry(self) -> None:
        """Retry what is repaired now, and run what that revives."""
        flow_bodies.BROKEN.difference_update(self._world.repaired)
        ends = self.ends()
        started = self._retry_batches(ends)
        for name in self._in_any_order(frozenset(self._world.repaired & ends.keys()) - started):
            assert self._app.retry(self._ids[name]) == (ends[name] == "FAILED"), name
        self._settle()

    def _retry_batches(self, ends: dict[str, str]) -> set[str]:
        """Start over the failed children of some batches, as a whole; return them."""
        started: set[str] = set()
        for batch in batches_of(self._graph):
            failed = {child.name for child in batch.children if ends.get(child.name) == "FAILED"}
            if failed and self._random.random() < 0.5:
                assert self._app.batch_handle(self._ids[batch.name]).retry_failed() == len(failed)
                started |= failed
        return started

    def ends(self) -> dict[str, str]:
        """How each step and each batch has ended."""
        jobs = all_jobs(self._app)
        self._ids = {job.args[0]: job.id for job in jobs}
        return {job.args[0]: BY_USER if job.reason == "canceled" else job.status.value for job in jobs}

    def _in_any_order(self, names: frozenset[str]) -> list[str]:
        return self._random.sample(sorted(names), len(names))

    def _settle(self) -> None:
        for _ in range(2 * len(self._ids) + 2):
            drain(self._app)
            live = self._live()
            if not live:
                return
            for name in live & self._world.paused:
                self._app.resume(self._ids[name])
            self._signal(sorted(live))
            drain(self._app)
            self._signal(sorted(self._live()))  # what was loaded meanwhile waits, too
            self._clock.advance(TIMEOUT + 1)
        raise AssertionError(f"these steps never end: {sorted(self._live())}")

    def _live(self) -> set[str]:
        return {name for name, end in self.ends().items() if end in LIVE}

    def _signal(self, names: list[str]) -> None:
        for name in names:
            if name in self._world.waiting - self._world.unsignaled:
                self._app.signal(f"go {name}")


def check(apps: Apps, clock: VirtualClock, seed: int) -> None:
    """Play one story to its end, and compare; everything about it comes from the seed."""
    random = Random(seed)
    author = Author(random)
    graph = author.graph()
    world = author.world(graph)
    app = apps(clock=clock)
    story = Story(app, clock, graph, world, random)
    story.play()
    first = predict(graph, world)
    assert story.ends() == first, f"seed {seed}: {graph} {world}"
    story.retry()
    assert story.ends() == predict(graph, world, first), f"seed {seed}, after the retry: {graph} {world}"
    check_settled_flows(app.url)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 20))])
def test_random_flow_ends_as_predicted(apps: Apps, clock: VirtualClock, seed: int):
    """J8.1, J8.2, J8.3, J8.4, J8.5, J2.2, J2.3, J2.4: chains, groups, branches, batches, signals in any mixture."""
    check(apps, clock, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20, 1020))
def test_many_random_flows_end_as_predicted(apps: Apps, clock: VirtualClock, seed: int):
    """J8.1, J8.2, J8.3, J8.4, J8.5, J2.2, J2.3, J2.4: the same, many times."""
    check(apps, clock, seed)
