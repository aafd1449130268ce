"""Runs a flow up to its middle and draws it as docs/images/flow.svg: `make docs-pictures`.

Nothing is drawn that did not happen: a worker runs the flow, and `windlass job graph --svg` draws the same picture.
"""

import sys
import threading
from pathlib import Path

from windlass import RESULT, FlowGraph, JobStatus, Settings, Windlass, group
from windlass.cli.job.graph_svg import draw
from windlass.domain.clock import SystemClock

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "flow.svg"

app = Windlass("sqlite://", settings=Settings())
over = threading.Event()


@app.job
def fetch(album: str) -> list[str]:
    """Give the pictures of an album."""
    threading.Event().wait(0.12)
    return [album]


@app.job
def resize(number: int) -> int:
    """Resize a picture; the later ones take until the end."""
    over.wait(0.8 + number / 10 if number < 2 else 60)
    return number


@app.job
def watermark(number: int) -> int:
    """Mark a picture."""
    over.wait(0.2)
    return number


@app.job
def publish(numbers: list[int]) -> str:
    """Publish the album."""
    return f"/albums/{len(numbers)}"


@app.job
def alert(outcomes: list[object]) -> None:
    """Tell the photographer."""


@app.job
def mail(address: str) -> None:
    """Send the address."""


def half_way() -> FlowGraph:
    """A flow of which half has happened."""
    pictures = [resize.bind(0).then(watermark.bind(RESULT)), *(resize.bind(number) for number in range(1, 4))]
    album = group(*pictures).then_on_failure(alert.bind(RESULT)).then(publish.bind(RESULT)).then(mail.bind(RESULT))
    handle = fetch.bind("summer").then(album).enqueue()
    with app.worker():
        while handle.graph().counts.get(JobStatus.SUCCEEDED, 0) < 4:
            threading.Event().wait(0.05)
        graph = handle.graph()
        over.set()
        while not handle.graph().ended:
            threading.Event().wait(0.05)
    return graph


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(half_way(), SystemClock().now()), encoding="utf-8")
    app.close()
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: written\n")


if __name__ == "__main__":
    main()
