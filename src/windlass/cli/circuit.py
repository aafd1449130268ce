"""`windlass circuit`: list circuits, and switch them by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.groups import NounGroup
from windlass.cli.known_names import known_name
from windlass.cli.output import note, write_line
from windlass.cli.pages import show_list
from windlass.cli.parameters import create_option, json_option, on_application
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.domain.circuit import CircuitState
from windlass.domain.limits import CircuitStatus

COLUMNS: Final = (
    Column("service", lead=True),
    Column("state", lead=True),
    Column("failed", right=True),
    Column("opens at", right=True),
    Column("tried again", right=True),
)
CODES: Final = "Exit codes: 0 done, 1 no such circuit is known, 2 wrong usage."
STYLES: Final = {CircuitState.CLOSED: "green", CircuitState.OPEN: "bold red", CircuitState.HALF_OPEN: "yellow"}


@click.group(name="circuit", cls=NounGroup)
def command() -> None:
    """List circuits, open, close and reset them."""


@command.command(name="list", epilog=pipe_epilog("circuit", COLUMNS))
@on_application
@json_option("circuit list")
def list_circuits(app: Windlass, as_json: bool) -> None:
    """List circuits and what they do now.

    \b
        windlass circuit list
    """
    found = app.circuits()
    show_list(app, found, COLUMNS, _row, "no circuit has been used", as_json=as_json)


@command.command(name="open", epilog=CODES)
@on_application
@click.argument("service")
@create_option("circuit")
def open_circuit(app: Windlass, service: str, create: bool) -> None:
    """Keep jobs from a service, until the circuit is closed or reset.

    A circuit is known once a job with it has run, or if it was configured, or if a job of the application is declared
    with it.

    \b
        windlass circuit open payment-gateway
    """
    with known_name():
        app.circuit(service).open(create=create)
    write_line(f"circuit {service} is open until it is closed")
    note(f"to undo it: windlass circuit close {service}")


@command.command(name="close", epilog=CODES)
@on_application
@click.argument("service")
def close_circuit(app: Windlass, service: str) -> None:
    """Let jobs through to a service again.

    \b
        windlass circuit close payment-gateway
    """
    with known_name(may_create=False):
        app.circuit(service).close()
    write_line(f"circuit {service} is closed")


@command.command(name="reset", epilog=CODES)
@on_application
@click.argument("service")
def reset_circuit(app: Windlass, service: str) -> None:
    """Close a circuit and forget every call it has counted.

    \b
        windlass circuit reset payment-gateway
    """
    with known_name(may_create=False):
        app.circuit(service).reset()
    write_line(f"circuit {service} is closed and counts from the start")


def _row(circuit: CircuitStatus, now: datetime) -> list[Cell]:
    again = circuit.opens_at
    waits = Cell("when closed by hand") if circuit.held_open else Cell("")
    if again is not None and again > now:
        waits = moment_cell(again, now)
    return [
        Cell(circuit.service),
        Cell(circuit.state.value.lower().replace("_", " "), STYLES[circuit.state]),
        Cell(f"{circuit.failures:,} of {circuit.calls:,}"),
        Cell(f"{circuit.settings.failure_rate:g} % of {circuit.settings.window:,}"),
        waits,
    ]
