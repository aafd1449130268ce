"""The scenes of work that goes wrong: dead letters and their re-drive, a service that is down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from windlass import CircuitProfile, CircuitState, JobHandle, JobStatus
from windlass.cli.demo.presenter import Stage
from windlass.cli.demo.promises import Promises, SceneJobs
from windlass.cli.demo.shop import CARRIER, CIRCUIT, PRICES, Shop
from windlass.domain.clock import monotonic

ARTICLES: Final = ("kettle", "lamp", "rug", "kettle")
PARCELS: Final = 6
OPEN_WAIT: Final = 2.0
PATIENCE: Final = 20.0


def dead_letters(stage: Stage, promises: Promises, shop: Shop) -> None:
    """Jobs that fail for good are kept with their reason, grouped, and started over once the cause is gone."""
    stage.scene(
        6,
        "Dead letters",
        "Nobody has loaded the price list: every invoice fails for good. They are kept, grouped by what went wrong.",
    )
    app = shop.app
    with app.worker(concurrency=4):
        handles: list[JobHandle[str]] = app.enqueue_many([shop.invoice.bind(article) for article in ARTICLES])
        ended = [handle.join(timeout=PATIENCE) for handle in handles]
        promises.keep("jobs that cannot succeed end FAILED", set(ended) == {JobStatus.FAILED})
        groups = app.dead_letters.groups()
        rows = [[(str(one.count), "bold red"), (one.target, ""), (one.sample, "red")] for one in groups]
        stage.table(["dead", "target", "what went wrong"], rows)
        promises.keep("every dead letter is in a group", sum(one.count for one in groups) == len(ARTICLES))
        PRICES.update(kettle=40, lamp=25, rug=90)
        stage.line(("the price list is loaded", "bold"), ("$ windlass dlq redrive --yes", "bold"))
        redriven = app.dead_letters.redrive(note="the price list was not loaded")
        results = [handle.result(timeout=PATIENCE) for handle in handles]
        stage.line(("✓", "green"), (f"{redriven.redriven} started over: {', '.join(results)}", ""))
    promises.keep("all of them were started over", redriven.redriven == len(ARTICLES))
    promises.keep("no dead letter is left", not list(app.dead_letters.find()))


def open_circuit(stage: Stage, promises: Promises, shop: Shop) -> SceneJobs:
    """A service that is down is left alone: its jobs wait without spending attempts, and trials find it back."""
    stage.scene(
        7,
        "A service that is down",
        "The carrier does not answer. After three failures its circuit opens: the other parcels wait, untried.",
    )
    app = shop.app
    app.configure_circuit(CIRCUIT, CircuitProfile.FAST, open_wait=OPEN_WAIT)
    circuit = app.circuit(CIRCUIT)
    CARRIER.clear()
    with app.worker(concurrency=1):
        handles: list[JobHandle[str]] = app.enqueue_many([shop.ship.bind(parcel) for parcel in range(1, PARCELS + 1)])
        opened = _until(lambda: circuit.state() is CircuitState.OPEN)
        _until(lambda: all(handle.status() is JobStatus.PENDING for handle in handles))  # one may have begun before
        tried = [app.get(handle.id).attempts for handle in handles]
        last = app.explain(handles[-1].id)
        stage.line((f"circuit {CIRCUIT}: {circuit.state().value}", "bold red"), (f"attempts so far: {tried}", "dim"))
        stage.line(("$ windlass job explain", "bold"), (f"{last.code}: {last.message}", "yellow"))
        promises.keep("the circuit opens", opened and last.code == "circuit_open")
        CARRIER.set()
        results = [handle.result(timeout=PATIENCE) for handle in handles]
        closed = _until(lambda: circuit.state() is CircuitState.CLOSED)
    attempts = [app.get(handle.id).attempts for handle in handles]
    stage.line(
        (f"circuit {CIRCUIT}: {circuit.state().value}", "bold green"), (f"attempts in the end: {attempts}", "dim")
    )
    stage.line(("✓", "green"), (f"the carrier is back, two trials went well, and {results[-1]}", ""))
    promises.keep("trials close the circuit", closed)
    promises.keep("who waited spent no attempt on waiting", sum(attempts) == PARCELS + sum(tried))
    return SceneJobs("a service that is down", [handle.id for handle in handles])


def _until(true: Callable[[], bool]) -> bool:
    pause, ends = threading.Event(), monotonic() + PATIENCE
    while not true():
        if monotonic() > ends:
            return False
        pause.wait(0.02)
    return True
