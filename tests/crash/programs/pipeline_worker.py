"""A worker of the pipelines of `pipelines.py`: `python -m tests.crash.programs.pipeline_worker URL [CONCURRENCY]`.

It serves the queue TEST_QUEUE, which its pipelines have too, else all. Builds that are broken on purpose are named by
TEST_BROKEN_BUILD.
"""

import logging
import os
import sys

from tests.crash.programs.broken_pipelines import break_build
from tests.crash.programs.pipelines import pipelines_app


def main(url: str, concurrency: str = "10") -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    break_build(os.environ.get("TEST_BROKEN_BUILD", ""))
    queue = os.environ.get("TEST_QUEUE")
    app = pipelines_app(url, queue or "default").app
    worker = app.worker(concurrency=int(concurrency), queues=[queue] if queue else None)
    code = worker.run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
