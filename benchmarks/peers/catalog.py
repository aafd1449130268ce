"""The queues that we are measured beside, which of them can be measured here, and how to install the others."""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

NODE_MODULES = Path(sys.prefix) / "npm" / "node_modules"
"""Where `make bench-peers-npm` installs: in the virtual environment, which git ignores."""
INSTALL_PYTHON = "pip install -e '.[dev,peers]'   (make bench-peers does it)"
INSTALL_NPM = "make bench-peers-npm"
INSTALL_NODE = f"install Node.js 18 or newer with npm (Debian: apt-get install nodejs npm), then {INSTALL_NPM}"


class Peer(NamedTuple):
    key: str
    """For --peer."""
    name: str
    packages: tuple[str, ...]
    """Python packages that its module imports."""
    npm: str = ""

    @property
    def module(self) -> str:
        return f"benchmarks.peers.{self.key}_peer"

    def load(self) -> Any:
        return import_module(self.module)


PEERS = (
    Peer("pgqueuer", "PgQueuer", ("asyncpg", "pgqueuer", "uvloop")),
    Peer("procrastinate", "Procrastinate", ("procrastinate", "psycopg", "psycopg_pool", "uvloop")),
    Peer("graphile", "Graphile Worker", ("psycopg",), npm="graphile-worker"),
    Peer("awa", "Awa", ("awa", "psycopg", "uvloop")),
    Peer("huey", "Huey", ("huey",)),
)
BY_KEY = {peer.key: peer for peer in PEERS}


def missing(peer: Peer) -> str | None:
    """What a peer lacks and how to install it; None if it can be measured."""
    absent = [package for package in peer.packages if find_spec(package) is None]
    if absent:
        return f"the Python package {absent[0]} is not installed: {INSTALL_PYTHON}"
    if not peer.npm:
        return None
    if shutil.which("node") is None:
        return f"there is no `node` on the PATH: {INSTALL_NODE}"
    if not (NODE_MODULES / peer.npm).is_dir():
        return f"the npm package {peer.npm} is not in {NODE_MODULES}: {INSTALL_NPM}"
    return None


def all_missing(peers: list[Peer]) -> dict[str, str]:
    """Of these peers those that cannot be measured, by name."""
    found = {peer.name: missing(peer) for peer in peers}
    return {name: reason for name, reason in found.items() if reason is not None}


def chosen(text: str) -> list[Peer]:
    """The peers of an argument: `graphile,procrastinate`."""
    keys = [key.strip() for key in text.lower().split(",")]
    unknown = [key for key in keys if key not in BY_KEY]
    if unknown:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(BY_KEY)}, got {text!r}")
    return [peer for peer in PEERS if peer.key in keys]
