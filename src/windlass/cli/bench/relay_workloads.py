"""P8, P9: hand-offs to a destination outside of the database: a local HTTP server in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windlass import HttpTarget, Outlet, Pipeline, Windlass
from windlass.cli.bench.checks import differences
from windlass.cli.bench.measure import Load, Measure, migrated
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic
from windlass.stores.plans import remote_handoffs

PUBLICATION: Final = "bench-items"
LIVE, DEAD = "live", "dead"
PAYLOAD: Final = "x" * 90
PAUSE: Final = 0.01
WAIT: Final = 3_600.0
DEAD_TIMEOUT: Final = 1.0
STALLED: Final = b"/dead"
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def run_relay(scratch: Scratch, load: Load, *, dead: bool = False) -> Measure:
    """P8, P9: hand-offs to one destination, which wait until it is resumed; P9: beside one that never answers."""
    with receiver() as (live, stalled), migrated(scratch) as bench:
        to: dict[str, Outlet] = {LIVE: HttpTarget(live)}
        if dead:
            to[DEAD] = HttpTarget(stalled, timeout=DEAD_TIMEOUT)
        pipeline = declare(bench.app, to)
        with bench.app.worker(concurrency=load.concurrency):
            pipeline.submit(1).join(WAIT)  # connects
            _drained(bench.app)
            for destination in to:
                bench.app.publications.pause(PUBLICATION, destination)
            pipeline.submit(load.jobs).join(WAIT)
            began = monotonic()
            for destination in reversed(to):  # the dead one first
                bench.app.publications.resume(PUBLICATION, destination)
            _drained(bench.app)
            seconds = monotonic() - began
        admitted = {one.subscriber: one.last_hour.admitted for one in bench.app.publications.backlog()}
        problems = differences(("hand-offs admitted", load.jobs + 1, admitted[LIVE]))
        return Measure(load.jobs / seconds, problems, {"seconds": seconds})


def without_dead(scratch: Scratch, load: Load) -> float:
    """Return the rate without the destination that never answers."""
    return run_relay(scratch, load).value


def declare(app: Windlass, to: dict[str, Outlet]) -> Pipeline:
    """Declare an expansion whose items are handed over to destinations outside."""
    bench = app.pipeline("bench-publisher", version="1", buffer=500)

    @bench.expand
    def items(count: int) -> Iterator[str]:
        return (f"{number:09}{PAYLOAD}" for number in range(count))

    bench.publish(PUBLICATION, to=to)
    return bench


def _drained(app: Windlass) -> None:
    while app.database.read(remote_handoffs.next_due, PUBLICATION, LIVE) is not None:
        threading.Event().wait(PAUSE)


# ---------------------------------------------------------------------- the server


@contextmanager
def receiver() -> Iterator[tuple[str, str]]:
    """Run a server in another process; return the URL of a destination that answers, and of one that never does."""
    code = f"from {__name__} import serve; serve()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        base = f"http://127.0.0.1:{int(process.stdout.readline())}"
        yield f"{base}/live", f"{base}{STALLED.decode()}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def serve() -> None:
    """Answer requests until the process ends; print the port first."""
    asyncio.run(_serve())


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
            )
            await reader.readexactly(length)
            if STALLED in head.partition(b"\r\n")[0]:
                await asyncio.Event().wait()
            writer.write(OK)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
