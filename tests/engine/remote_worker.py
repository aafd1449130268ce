"""A worker in a process of its own, which looks for work only when it is woken.

`python -m tests.engine.remote_worker URL` is what `remote_worker` starts.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engine import jobs, reporting_jobs
from tests.engine.apps import ONLY_WAKEUPS
from windlass import Windlass

ROOT = Path(__file__).parents[2]


@contextmanager
def remote_worker(url: str) -> Iterator[int]:
    """Start one, wait until it claims, give its process id, and end it."""
    command = [sys.executable, "-m", "tests.engine.remote_worker", url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process.pid
        finally:
            process.terminate()
            assert process.wait(90) == 0, "a drain without running jobs is clean"


def main(url: str) -> int:
    app = Windlass(url, settings=ONLY_WAKEUPS)
    for function in (jobs.add, jobs.aadd, jobs.fail, jobs.process_id, jobs.leave_a_mark_at_the_end):
        app.job(function)
    app.job(reporting_jobs.climb)
    code = app.worker().run(when_ready=lambda node: print("ready", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
