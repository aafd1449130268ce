"""A process whose SQLite file cannot be written for a while: `python -m tests.crash.programs.sqlite_trouble KIND …`.

`unprivileged URL SCRATCH_URL GATE`: the file's permissions do not let it write, until the gate opens.
`full URL`: the file must not grow (RLIMIT_FSIZE), until the gate opens.
"""

import logging
import os
import pwd
import resource
import sys
from pathlib import Path

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.waiting import until
from windlass import StoreUnavailableError, Windlass


def refused(app: Windlass) -> None:
    try:
        app.bind(bodies.note, -1).enqueue()
    except StoreUnavailableError as error:
        print(f"refused: {error}", flush=True)


def unprivileged(url: str, scratch: str, gate: str) -> None:
    warm_up = make_app(scratch)  # whatever is imported late must be imported before the rights to read it are gone
    with warm_up.worker():
        warm_up.bind(bodies.note, 0).enqueue().result(90)
    warm_up.close()
    app = make_app(url)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setegid(nobody.pw_gid)
        os.seteuid(nobody.pw_uid)
    refused(app)
    until(Path(gate).exists, "the gate")
    handle = app.bind(bodies.note, 1).enqueue()
    print(f"stored {handle.id}", flush=True)
    app.close()


def full(url: str) -> None:
    app = make_app(url)
    stored = 0
    with app.worker(concurrency=5) as worker:
        assert worker.node is not None
        print(f"ready {worker.node.id}", flush=True)
        app.bind(bodies.hold, -2).enqueue()
        until(lambda: "began" in Path(os.environ["TEST_RUNS"]).read_text(), "the held job to begin")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        try:
            for stored in range(100_000):
                app.bind(bodies.note, stored).enqueue()
        except StoreUnavailableError as error:
            print(f"refused: {error}", flush=True)
        until(Path(os.environ["TEST_GATE"]).exists, "the gate")
        print(f"stored {stored}", flush=True)
        until(lambda: Path(os.environ["TEST_RUNS"]).read_text().count("ran -2") == 1, "the held body to end")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        app.bind(bodies.note, stored).enqueue().result(90)
        print("goes on", flush=True)
    app.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if sys.argv[1] == "full":
        full(*sys.argv[2:])
    else:
        unprivileged(*sys.argv[2:])
