"""A worker process: `python -m tests.crash.programs.worker URL [CONCURRENCY] [MODULE:FUNCTION,…]`.

It knows the functions named, else all of `bodies`, and what lies in the modules of TEST_ALLOW. It serves the queues of
TEST_QUEUES, else all. It prints `ready NODE` once it works, and its log.
"""

import importlib
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app


def function_named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def main(url: str, concurrency: str = "10", known: str = "") -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    allow = os.environ.get("TEST_ALLOW", "").split()
    app = make_app(url, tuple(map(function_named, known.split(","))) if known else bodies.ALL, allow=allow)
    queues = os.environ.get("TEST_QUEUES", "").split(",")
    worker = app.worker(concurrency=int(concurrency), queues=queues if any(queues) else None)
    code = worker.run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
