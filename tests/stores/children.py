"""Separate processes beside the test's: started, released at the same moment, and asked what they did.

Run as `python -m tests.stores.children migrate URL`, `… drain URL NODE` or `… signal URL KEY`: says
`ready`, waits for a line, and then answers in JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from windlass.domain.clock import SystemClock
from windlass.domain.job import Claim
from windlass.domain.transition import Times, retry_at, succeeded
from windlass.stores import migrate
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plans import claims, cluster, jobs, queues, signal_waits
from windlass.testing.contract.workbench import FAILURE, LEASE

ROOT = Path(__file__).parents[2]
TIMEOUT = 300


def all_at_once(*commands: Sequence[str]) -> list[Any]:
    """Start a child per command, let all go together, and give their answers."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.children", *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return [json.loads(child.communicate(timeout=TIMEOUT)[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _migrate(database: Database) -> list[str]:
    return migrate.migrate(database)


def _drain(database: Database, node: str) -> list[str]:
    """Claim all there is, fail every first attempt, finish every second one; gives the ids that were finished."""
    finished: list[str] = []
    while heads := database.read(queues.heads, lambda _: True, lambda _: True).heads:
        claimed = database.run(claims.claim, ClaimRequest(node, heads, 20, 8, 0)).claims
        won = database.run(jobs.apply, [_ending(claim) for claim in claimed])
        assert all(won), "a claim belongs to its claimer"
        finished += [str(claim.job_id) for claim in claimed if claim.attempts]
    return finished


def _signal(database: Database, key: str) -> list[str]:
    """Send a signal until no job waits; return the ids of the jobs that got it."""
    signaled: list[str] = []
    while found := database.run(signal_waits.deliver, '{"outcome":"signaled"}', None, key=key):
        signaled += [job.job_id for job in found]
    return signaled


def _ending(claim: Claim) -> Any:
    times = Times(claim.picked_at, claim.picked_at, 0)
    return succeeded(claim, times, None, holds_key=False) if claim.attempts else retry_at(claim, times, FAILURE, 0)


def _main(command: str, url: str, *rest: str) -> None:
    database = open_database(url, SystemClock())
    if command == "drain":
        database.run(cluster.register, cluster.NodeRow(rest[0], "host", 1, "0", None), 100 * LEASE)
    actions: dict[str, Callable[..., list[str]]] = {"migrate": _migrate, "drain": _drain, "signal": _signal}
    print("ready", flush=True)
    sys.stdin.readline()
    answer = actions[command](database, *rest)
    database.close()
    print(json.dumps(answer))


if __name__ == "__main__":
    _main(*sys.argv[1:])
