"""`windlass circuit`: which services jobs are kept from, and switching circuits by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.groups import NounGroup
from windlass.cli.output import note, say, say_items
from windlass.cli.parameters import json_option, on_application
from windlass.cli.tables import Cell, Column, table
from windlass.domain.circuit import CircuitState
from windlass.domain.protected import CircuitStatus

COLUMNS: Final = (
    Column("service", lead=True),
    Column("state", lead=True),
    Column("failed", right=True, lead=True),
    Column("opens at", right=True),
    Column("tried again", right=True),
)
STYLES: Final = {CircuitState.CLOSED: "green", CircuitState.OPEN: "bold red", CircuitState.HALF_OPEN: "yellow"}


@click.group(name="circuit", cls=NounGroup)
def command() -> None:
    """List circuits, open, close and reset them."""


@command.command(name="list")
@on_application
@json_option("circuit list")
def list_circuits(app: Windlass, as_json: bool) -> None:
    """List circuits and what they do now.

    \b
        windlass circuit list
    """
    found = app.circuits()
    if as_json:
        say_items(found)
    elif found:
        now = app.parts.clock.now()
        table(COLUMNS, [_row(circuit, now) for circuit in found])
    else:
        note("no circuit was ever used")


@command.command(name="open")
@on_application
@click.argument("service")
def open_circuit(app: Windlass, service: str) -> None:
    """Keep jobs from a service, until the circuit is closed or reset.

    \b
        windlass circuit open payment-gateway
    """
    app.circuit(service).open()
    say(f"circuit {service} is open until somebody closes it")


@command.command(name="close")
@on_application
@click.argument("service")
def close_circuit(app: Windlass, service: str) -> None:
    """Let jobs through to a service again.

    \b
        windlass circuit close payment-gateway
    """
    app.circuit(service).close()
    say(f"circuit {service} is closed")


@command.command(name="reset")
@on_application
@click.argument("service")
def reset_circuit(app: Windlass, service: str) -> None:
    """Close a circuit and forget every call it has counted.

    \b
        windlass circuit reset payment-gateway
    """
    app.circuit(service).reset()
    say(f"circuit {service} is closed and counts from the start")


def _row(circuit: CircuitStatus, now: datetime) -> list[Cell]:
    again = circuit.opens_at
    waits = Cell("when closed by hand") if circuit.held_open else Cell("")
    if again is not None and again > now:
        waits = Cell(phrases.distance(again, now), plain=phrases.utc(again))
    return [
        Cell(circuit.service),
        Cell(circuit.state.value.lower().replace("_", " "), STYLES[circuit.state]),
        Cell(f"{circuit.failures:,} of {circuit.calls:,}"),
        Cell(f"{circuit.settings.failure_rate:g} % of {circuit.settings.window:,}"),
        waits,
    ]
