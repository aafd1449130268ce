"""A caller: `python -m tests.crash.programs.pipeline_caller URL submit KEY` or `… URL redrive ID`.

It prints `stored ID DUPLICATE`, or `redriven ID`.
"""

import sys

from tests.crash.programs.pipelines import Order, pipelines_app


def main(url: str, verb: str, given: str) -> None:
    app, pipelines = pipelines_app(url)
    if verb == "submit":
        run = pipelines["orders"].submit(Order(given, lines=5), key=given)
        print(f"stored {run.id} {run.duplicate}", flush=True)
    else:
        print(f"redriven {app.executions.redrive(given).id}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
