"""A process that forks while its application is open and busy: `python -m tests.crash.programs.forking URL CHILDREN`.

Children enqueue and wait for a result with the application they inherited, and end in both ways a child can.
"""

import faulthandler
import logging
import os
import signal
import sys
import threading

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.waiting import until
from windlass import Windlass

CHILD_MAY_TAKE = 30


def child(app: Windlass, number: int) -> None:
    signal.alarm(CHILD_MAY_TAKE)  # ends a child that hangs, and with it the test
    faulthandler.dump_traceback_later(CHILD_MAY_TAKE - 5)
    first, *others = [app.bind(bodies.note, number * 10 + n).enqueue() for n in range(3)]
    assert first.result(CHILD_MAY_TAKE) == number * 10
    assert app.get(first.id).attempts == 1
    app.enqueue_many([app.bind(bodies.note, number * 10 + n) for n in range(3, 6)])
    assert others[-1].result(CHILD_MAY_TAKE) == number * 10 + 2
    if number % 2:
        os._exit(0)
    sys.exit(0)  # runs what was registered to run at exit, the application's own closing too


def main(url: str, children: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = make_app(url)
    busy = threading.Event()
    enqueued = [0, 0, 0]

    def keep_enqueueing(which: int) -> None:
        while not busy.is_set():
            app.bind(bodies.note, -1).enqueue()
            enqueued[which] += 1

    with app.worker(concurrency=5):
        threads = [threading.Thread(target=keep_enqueueing, args=(which,)) for which in range(len(enqueued))]
        for thread in threads:
            thread.start()
        until(lambda: min(enqueued) > 3, "the application to be busy")
        for number in range(1, int(children) + 1):
            pid = os.fork()
            if pid == 0:
                child(app, number)
            _, status = os.waitpid(pid, 0)
            if status:
                print(f"child {number} ended with status {status}", flush=True)
        busy.set()
        for thread in threads:
            thread.join()
        assert app.bind(bodies.note, 0).enqueue().result(90) == 0  # what the children did has not hurt the parent
    app.close()
    print(f"enqueued {sum(enqueued)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
