"""`windlass node`: list the worker processes of the cluster, and drain one."""

from __future__ import annotations

import difflib
import threading
from contextlib import nullcontext
from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.confirmation import confirm
from windlass.cli.groups import NounGroup
from windlass.cli.output import console, drawn, write_line
from windlass.cli.pages import show_list
from windlass.cli.parameters import json_option, on_application, yes_option
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.domain.cluster import Node

COLUMNS: Final = (
    Column("node", lead=True),
    Column("state", lead=True),
    Column("running", right=True),
    Column("queues"),
    Column("version"),
    Column("heartbeat", right=True),
    Column("started", right=True),
)
INTERVAL: Final = 0.3


@click.group(name="node", cls=NounGroup)
def command() -> None:
    """List the worker processes of the cluster, or have one leave."""


@command.command(name="list", epilog=pipe_epilog("node", COLUMNS))
@on_application
@json_option("node list")
def list_nodes(app: Windlass, as_json: bool) -> None:
    """List every registered node, oldest first.

    Running is how many jobs it ran at its last heartbeat, a few seconds ago. A node whose lease has expired is shown as
    lost until its jobs have been recovered.

    \b
        windlass node list
    """
    nodes = app.nodes()
    show_list(app, nodes, COLUMNS, _row, "no node has registered", as_json=as_json)


@command.command(name="drain", epilog="Exit codes: 0 asked (with --wait: it has left), 1 no such node is alive.")
@on_application
@click.argument("node", metavar="ID")
@click.option("--wait", "-w", is_flag=True, show_envvar=True, help="Return when the node has left.")
@yes_option
def drain(app: Windlass, node: str, wait: bool, yes: bool) -> None:
    """Have a node finish what it runs, and leave.

    The node sees the request at its next heartbeat, within seconds. Running jobs have node.drain_timeout to end, then
    they are released to others. Its process exits by itself, and a supervisor (worker --processes) does not restart it.

    \b
        windlass node drain web1-1234-a1b2c3d4 --wait
    """
    confirm(f"Drain node {node} of {app.database.description}?", yes=yes)
    if not app.drain_node(node):
        alive = [known.id for known in app.nodes() if known.alive]
        close = difflib.get_close_matches(node, alive, n=1)
        raise click.ClickException(f"no node {node} is alive{f'; did you mean {close[0]}?' if close else ''}")
    if wait:
        _await_exit(app, node)
    else:
        write_line(f"node {node} was asked to drain")


def _await_exit(app: Windlass, node_id: str) -> None:
    pause = threading.Event()
    with console().status(f"waiting for {node_id} to leave") if drawn() else nullcontext() as status:
        while (node := _find(app, node_id)) is not None and node.alive:
            if status is not None:
                status.update(f"waiting for {node_id} to leave; it runs {phrases.jobs(node.running)}")
            pause.wait(INTERVAL)
    if node is not None:
        raise click.ClickException(f"node {node_id} was lost while it drained; its jobs are recovered by others")
    write_line(f"node {node_id} has drained and left")


def _find(app: Windlass, node_id: str) -> Node | None:
    return next((node for node in app.nodes() if node.id == node_id), None)


def _row(node: Node, now: datetime) -> list[Cell]:
    return [
        Cell(node.id),
        Cell("alive", "green") if node.alive else Cell("lost", "bold red"),
        Cell(str(node.running), "bold blue" if node.running else ""),
        Cell("all" if node.queues is None else ", ".join(node.queues) or "none"),
        Cell(node.version),
        moment_cell(node.heartbeat_at, now),
        moment_cell(node.started_at, now),
    ]
