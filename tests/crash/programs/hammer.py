"""One of several processes that write to one SQLite file as fast as they can: enqueues, claims and completions.

`python -m tests.crash.programs.hammer URL SECONDS NUMBER`; prints how many jobs it enqueued and how many it ran.
"""

import logging
import sys

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from windlass import JobCompleted
from windlass.domain.clock import monotonic

NUMBERS_EACH = 1_000_000


def main(url: str, seconds: str, number: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = make_app(url)
    completed = 0

    @app.on(JobCompleted)
    def count(event: JobCompleted) -> None:
        nonlocal completed
        completed += 1

    enqueued, longest = 0, 0.0
    first = int(number) * NUMBERS_EACH
    with app.worker(concurrency=5):
        ends_at = monotonic() + float(seconds)
        while (began := monotonic()) < ends_at:
            if enqueued % 10:
                app.bind(bodies.note, first + enqueued).enqueue()
                enqueued += 1
            else:
                app.enqueue_many([app.bind(bodies.note, first + enqueued + n) for n in range(5)])
                enqueued += 5
            longest = max(longest, monotonic() - began)
    app.close()
    print(f"enqueued {enqueued} completed {completed} longest {longest:.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
