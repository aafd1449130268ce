"""A caller: `python -m tests.crash.programs.pipeline_caller URL submit KEY`, `… URL redrive ID`, or `… URL answer ID`.

It prints `stored ID DUPLICATE`, `redriven ID`, or `answered ANSWER DUPLICATE`; it answers an interaction with 7.
"""

import sys

from tests.crash.programs.pipelines import Order, pipelines_app


def main(url: str, verb: str, given: str) -> None:
    app, pipelines = pipelines_app(url)
    if verb == "submit":
        run = pipelines["orders"].submit(Order(given, lines=5), key=given)
        print(f"stored {run.id} {run.duplicate}", flush=True)
    elif verb == "answer":
        done = app.executions.complete(interaction_id=given, answer=7)
        print(f"answered {done.answer} {done.duplicate}", flush=True)
    else:
        print(f"redriven {app.executions.redrive(given).id}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
