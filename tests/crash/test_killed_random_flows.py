"""Workers are killed while they run random flows; each flow ends as a recursion over it predicts."""

from functools import partial
from random import Random
from typing import Any

import pytest

from tests.crash.programs import bodies
from tests.flow.flow_builder import Builder
from tests.flow.flow_model import Author, Batch, Graph, Step, World, in_cancel_order, whole
from tests.flow.flow_reference import BY_USER, predict
from tests.support.crashing import Stage
from tests.support.facts import one
from tests.support.programs import SHORT_LEASES, Program
from tests.support.waiting import until

PREDICATES = {"yes": bodies.says_yes, "no": bodies.says_no, "raises": bodies.raises}
ENDED = "SELECT count(*) FROM windlass_done"
LIVE = "SELECT count(*) FROM windlass_hot"
TIMEOUT = 1
"""Seconds after which a signal that never comes is no longer waited for."""


class Flows:
    """Random flows on one store."""

    def __init__(self, stage: Stage, random: Random, count: int) -> None:
        self._stage, self._job = stage, stage.app.job(bodies.flow_step)
        self._flows: list[tuple[Graph, World]] = []
        for number in range(count):
            author = Author(random, prefix=f"f{number}-", loads=False)
            graph = author.graph()
            self._flows.append((graph, author.world(graph)))
            self._enqueue(graph)
        self._ids = {job.args[0]: job.id for job in stage.app.find(limit=1000)}
        for graph, world in self._flows:
            for name in in_cancel_order(graph, world.canceled, self._ids):
                assert stage.app.cancel(self._ids[name]) or name == whole(graph)
        for name in self._names("waiting") - self._names("unsignaled"):
            stage.app.signal(f"go {name}")

    def _enqueue(self, graph: Graph) -> None:
        builder = Builder(self._call, PREDICATES)
        if isinstance(graph, Batch):
            flaky = any(child.name in self._names("flaky") for child in graph.children)
            builder.batch(self._stage.app, graph, self._job.using(max_retries=1 if flaky else 0)).enqueue()
        else:
            builder.flow(graph).enqueue()

    def _call(self, step: Step) -> Any:
        call: Any = self._stage.app.bind(bodies.flow_step, step.name)
        call = call.using(max_retries=1 if step.name in self._names("flaky") else 0)
        return call.await_signal(f"go {step.name}", timeout=TIMEOUT) if step.waits else call

    def _names(self, kind: str) -> frozenset[str]:
        return frozenset[str]().union(*(getattr(world, kind) for _, world in self._flows))

    def worker(self) -> Program:
        """Start a worker in this world."""
        return self._stage.programs.worker(self._stage.url, 4, environ=self.environ)

    @property
    def environ(self) -> dict[str, str]:
        """The settings of workers, and how bodies end."""
        broken, flaky = ",".join(self._names("broken")), ",".join(self._names("flaky"))
        more = {"TEST_BROKEN": broken, "TEST_FLAKY": flaky, "WINDLASS_NODE__CRASH_BUDGET": "1000"}
        return {**SHORT_LEASES, "WINDLASS_NODE__SWEEP_INTERVAL": "0.2", **more}

    def check(self) -> None:
        """Compare all ends with the prediction."""
        ends = {
            job.args[0]: BY_USER if job.reason == "canceled" else job.status.value
            for job in self._stage.app.find(limit=1000)
        }
        for graph, world in self._flows:
            expected = predict(graph, world)
            assert {name: ends[name] for name in expected} == expected, f"{graph} {world}"


def has_ended(stage: Stage, count: int) -> bool:
    """Whether so many jobs have ended, or all."""
    return bool(one(stage.url, ENDED) >= count or one(stage.url, LIVE) == 0)


def kill_workers(stage: Stage, flows: Flows, random: Random, kills: int) -> None:
    """Two workers at a time; whenever some more jobs have ended, one of them is killed and another one starts."""
    workers = [flows.worker(), flows.worker()]
    for _ in range(kills):
        target = one(stage.url, ENDED) + random.randint(1, 4)
        until(partial(has_ended, stage, target), "jobs to end")
        workers.pop(random.randrange(2)).kill()
        workers.append(flows.worker())
    for worker in workers:
        worker.kill()


def check(stage: Stage, seed: int, count: int, kills: int) -> None:
    """Play one story to its end, and compare; all but the moments of the kills comes from the seed."""
    random = Random(seed)
    flows = Flows(stage, random, count)
    kill_workers(stage, flows, random, kills)
    stage.finished(environ=flows.environ)
    flows.check()


def test_random_flows_end_as_predicted_whatever_is_killed(stage: Stage):
    """J8.1, J8.2, J8.3, J8.4, J8.5, J7.4: eight flows and batches, ten kills."""
    check(stage, seed=1, count=8, kills=10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_random_flows_end_as_predicted_whatever_is_killed(stage: Stage, seed: int):
    """J8.1, J8.2, J8.3, J8.4, J8.5, J7.4: the same, many times."""
    check(stage, seed, count=20, kills=25)
