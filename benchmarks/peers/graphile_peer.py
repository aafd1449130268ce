"""Graphile Worker on our workloads; as a program it becomes the Node.js process of `graphile_worker.cjs`.

Producers and workers are its own, in Node.js. Settings are those that the project measures itself with, for throughput
and for latency; they stand in `graphile_worker.cjs` with their reasons. Its statements are prepared, and it logs
nothing. It deletes a finished job and keeps no history of it, which saves it work that ours does: it has no setting for
that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.catalog import NODE_MODULES
from benchmarks.peers.reports import differences

SCRIPT = str(Path(__file__).with_name("graphile_worker.cjs"))
ENVIRON = {**os.environ, "NODE_PATH": str(NODE_MODULES), "NODE_ENV": "production", "NO_LOG_SUCCESS": "1"}

DRAIN = 500
"""The size of the local queue."""
IDLE = 10
"""Jobs at a time."""
ENDS = True


def node(kind: str, url: str, *numbers: float) -> Any:
    """Run a producer, and return what it prints."""
    command = ["node", SCRIPT, kind, url, *map(str, numbers)]
    done = subprocess.run(command, env=ENVIRON, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout or "null")


def install(url: str) -> None:
    node("install", url)


def enqueue(url: str, count: int, callers: int = 1) -> float:
    return node("enqueue", url, count, callers)["seconds"]


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    return node("bulk", url, count, keyed_every)["seconds"]


def send(url: str, total: int, every: float) -> dict[int, float]:
    """A job each so many seconds; when each call returned, by the same clock."""
    return dict(node("send", url, total, every)["sent"])


def waiting(url: str) -> int:
    with psycopg.connect(url) as session:
        return session.execute("SELECT count(*) FROM graphile_worker.jobs").fetchone()[0]


def problems(url: str, count: int, bodies: int) -> list[str]:
    """A row goes with its job's success: if none is left, each ran; if there were as many bodies as jobs, each once."""
    return differences("Graphile Worker", ("left", 0, waiting(url)), ("bodies", count, bodies))


if __name__ == "__main__":
    os.execvpe("node", ["node", SCRIPT, *sys.argv[1:]], ENVIRON)
