"""A program that loads a batch: `python -m tests.crash.programs.loader URL ITEMS CHUNK`. It prints `loaded ID`."""

import sys

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from windlass import Batch, Windlass

FOLLOWER = 1_000_000
"""What the follower of the batch writes down."""


def batch_of(app: Windlass, items: int, chunk: int) -> Batch:
    """A batch of so many items, with a follower of its success and one of its failure."""
    made = app.batch("numbers", idempotency_key="numbers").each(bodies.note, range(items), chunk_size=chunk)
    return made.then_on_batch_success(app.bind(bodies.note, FOLLOWER)).then_on_batch_failure(
        app.bind(bodies.note, FOLLOWER + 1)
    )


def main(url: str, items: str, chunk: str) -> None:
    app = make_app(url)
    handle = batch_of(app, int(items), int(chunk)).enqueue()
    print(f"loaded {handle.id}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
