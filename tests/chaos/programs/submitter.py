"""Submits jobs one by one, and may be killed at any moment: `python -m tests.chaos.programs.submitter URL MIX SEED
FIRST LAST PER_SECOND`.

Started again it goes on where the witness saw it last, and submits that one once more: after a kill it is unknown
whether it was stored, and the key decides.
"""

import os
import sys
import threading
from pathlib import Path

from tests.chaos import witness
from tests.chaos.application import make_app
from tests.chaos.witness import NOTHING, say
from tests.chaos.workload import call, key_of
from windlass import StoreUnavailableError
from windlass.domain.clock import monotonic

PREFIX = "submitter-"
TIMEOUT = 0.2


def last_accepted(first: int) -> int:
    """The last number of this submitter that was accepted, or the first one."""
    accepted = witness.read(Path(os.environ[witness.PLACE])).accepted
    numbers = [int(entry.key.removeprefix(PREFIX)) for entry in accepted if entry.key and entry.key.startswith(PREFIX)]
    return max([first, *numbers])


def main(url: str, mix: str, seed: str, first: str, last: str, per_second: str) -> None:
    app = make_app(url)
    pause = threading.Event()
    began = monotonic()
    for turn, number in enumerate(range(last_accepted(int(first)), int(last)), 1):
        made = call(app, mix, int(seed), number, f"{PREFIX}{number}")
        handle = None
        while handle is None:
            try:
                handle = made.enqueue()
            except StoreUnavailableError:
                pause.wait(TIMEOUT)  # the key makes it safe to ask again
        say("accepted", handle.id, key_of(made) or NOTHING, f"{monotonic():.6f}")
        pause.wait(max(began + turn / float(per_second) - monotonic(), 0))
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
