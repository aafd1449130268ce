"""A worker process: `python -m tests.crash.programs.worker URL [CONCURRENCY] [QUEUE,QUEUE]`.

It prints `ready NODE` once it works, and its log.
"""

import logging
import sys

from tests.crash.programs.application import make_app


def main(url: str, concurrency: str = "10", queues: str = "") -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = make_app(url)
    worker = app.worker(concurrency=int(concurrency), queues=queues.split(",") if queues else None)
    code = worker.run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
