"""A worker that delivers to a receiver: `python -m tests.crash.programs.relay_worker URL RECEIVER`.

Hand-offs to the subscriber `crm`, rejects of the pipeline `sieve` and dead letters go there.
"""

import logging
import sys

from tests.support.remote_handoffs import RemoteStage
from windlass import HttpTarget, Pipeline, PipelinesSettings, RejectItem, Settings, Windlass

PATIENT = 90.0


class RelayPrograms:
    """The application of the workers and of the test."""

    def __init__(self, url: str, receiver: str) -> None:
        target = HttpTarget(receiver, timeout=PATIENT)
        settings = Settings(pipelines=PipelinesSettings(dlq_provider=target))
        self.app = Windlass(url, settings=settings)
        self.sieve = sieve_of(self.app, target)
        self.stage = RemoteStage(self.app, {"crm": target})


def sieve_of(app: Windlass, target: HttpTarget) -> Pipeline:
    """A pipeline that rejects odd numbers, and fails for negative ones."""
    sieve = app.pipeline("sieve", version="1", sink=target, retry_limit=0)

    @sieve.step
    def even(number: int) -> int:
        if number < 0:
            raise ValueError("negative")
        if number % 2:
            raise RejectItem("odd")
        return number

    return sieve


def main(url: str, receiver: str) -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = RelayPrograms(url, receiver).app
    code = app.worker(concurrency=10).run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
