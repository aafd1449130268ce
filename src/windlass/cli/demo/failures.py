"""The scenes of work that goes wrong: dead letters and their re-drive, a service that is down."""

from __future__ import annotations

from typing import Final

from windlass import CircuitProfile, CircuitState, JobHandle, JobStatus
from windlass.cli.demo.presenter import LONGEST_WAIT, Presenter, until
from windlass.cli.demo.shop import CARRIER, CIRCUIT, PRICES, Shop
from windlass.cli.demo.summary import SceneJobs

ARTICLES: Final = ("kettle", "lamp", "rug", "kettle")
PARCELS: Final = 6
OPEN_WAIT: Final = 2.0


def dead_letters(presenter: Presenter, shop: Shop) -> None:
    """Jobs that fail for good are kept with their reason, grouped, and started over once the cause is fixed."""
    presenter.scene(
        8,
        "Dead letters",
        "The price list is not loaded: every invoice fails for good. They are kept, grouped by what went wrong.",
    )
    app = shop.app
    with app.worker(concurrency=4):
        handles: list[JobHandle[str]] = app.enqueue_many([shop.invoice.bind(article) for article in ARTICLES])
        ended = [handle.join(timeout=LONGEST_WAIT) for handle in handles]
        presenter.expect("jobs that cannot succeed end FAILED", set(ended) == {JobStatus.FAILED})
        groups = app.dead_letters.groups()
        rows = [[(str(one.count), "bold red"), (one.target, ""), (one.sample, "red")] for one in groups]
        presenter.table(["dead", "target", "what went wrong"], rows)
        presenter.expect("every dead letter is in a group", sum(one.count for one in groups) == len(ARTICLES))
        PRICES.update(kettle=40, lamp=25, rug=90)
        presenter.line(("the price list is loaded", "bold"), ("$ windlass dlq redrive --yes", "bold"))
        redriven = app.dead_letters.redrive(note="the price list was not loaded")
        results = [handle.result(timeout=LONGEST_WAIT) for handle in handles]
        presenter.line(("✓", "green"), (f"{redriven.redriven} started over: {', '.join(results)}", ""))
    presenter.expect("all of them were started over", redriven.redriven == len(ARTICLES))
    presenter.expect("no dead letter is left", not list(app.dead_letters.find()))


def open_circuit(presenter: Presenter, shop: Shop) -> SceneJobs:
    """A service that is down gets no calls: its jobs wait without spending attempts, until trials succeed."""
    presenter.scene(
        10,
        "A service that is down",
        "The carrier does not answer. After three failures its circuit opens: no parcel is tried any more.",
    )
    app = shop.app
    app.configure_circuit(CIRCUIT, CircuitProfile.FAST, open_wait=OPEN_WAIT)
    circuit = app.circuit(CIRCUIT)
    CARRIER.clear()
    with app.worker(concurrency=1):
        handles: list[JobHandle[str]] = app.enqueue_many([shop.ship.bind(parcel) for parcel in range(1, PARCELS + 1)])
        opened = until(lambda: circuit.state() is CircuitState.OPEN)
        until(lambda: all(handle.status() is JobStatus.PENDING for handle in handles))  # one may have begun before
        explained = until(
            lambda: app.explain(handles[-1].id).code == "circuit_open"
        )  # a released one is due in a moment
        last = app.explain(handles[-1].id)
        tried = [app.get(handle.id).attempts for handle in handles]
        state = circuit.state().value
        presenter.line((f"circuit {CIRCUIT}: {state}", "bold red"), (f"attempts so far: {tried}", "dim"))
        presenter.line(("$ windlass job explain", "bold"), (f"{last.code}: {last.message}", "yellow"))
        presenter.expect("the circuit opens, and its jobs wait for it", opened and explained)
        CARRIER.set()
        results = [handle.result(timeout=LONGEST_WAIT) for handle in handles]
        closed = until(lambda: circuit.state() is CircuitState.CLOSED)
    attempts = [app.get(handle.id).attempts for handle in handles]
    presenter.line(
        (f"circuit {CIRCUIT}: {circuit.state().value}", "bold green"), (f"attempts in the end: {attempts}", "dim")
    )
    presenter.line(("✓", "green"), (f"the carrier is back, two trials went well, and {results[-1]}", ""))
    presenter.expect("trials close the circuit", closed)
    presenter.expect("waiting used up no attempt", sum(attempts) == PARCELS + sum(tried))
    return SceneJobs("a service that is down", [handle.id for handle in handles])
