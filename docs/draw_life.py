"""Draws docs/images/states.svg and docs/images/life.svg, a job's life: `make docs-pictures`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from docs.svg import LINE, MONO, TEXT, Box, Point, arrow, label, picture
from windlass import JobStatus

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"

FILLS: Final = {
    JobStatus.PENDING: "#5a6b7f",
    JobStatus.RUNNING: "#1f6fc4",
    JobStatus.WAITING: "#6a4fb0",
    JobStatus.PAUSED: "#94690f",
    JobStatus.SUCCEEDED: "#23803c",
    JobStatus.FAILED: "#c33636",
    JobStatus.CANCELED: "#6c6f76",
}


def state(status: JobStatus, x: float, y: float, height: float = 42) -> Box:
    """The box of a state."""
    return Box(status.value, x, y, FILLS[status], height=height)


# ---------------------------------------------------------------------------------------------------- states.svg

PENDING, RUNNING = state(JobStatus.PENDING, 240, 220), state(JobStatus.RUNNING, 500, 220)
PAUSED, FAILED = state(JobStatus.PAUSED, 240, 58, 52), state(JobStatus.FAILED, 780, 74, 84)
WAITING = state(JobStatus.WAITING, 500, 430)
SUCCEEDED, CANCELED = state(JobStatus.SUCCEEDED, 780, 220), state(JobStatus.CANCELED, 780, 326)


class Move(NamedTuple):
    """One arrow of the state machine."""

    source: Box
    target: Box
    points: tuple[Point, ...]
    dashed: bool = False


MOVES: Final = (
    Move(PENDING, RUNNING, ((PENDING.right, 211), (RUNNING.left, 211))),
    Move(RUNNING, PENDING, ((RUNNING.left, 230), (PENDING.right, 230))),
    Move(RUNNING, SUCCEEDED, ((RUNNING.right, 220), (SUCCEEDED.left, 220))),
    Move(RUNNING, FAILED, ((RUNNING.right - 20, RUNNING.top), (FAILED.left, 108))),
    Move(FAILED, PENDING, ((FAILED.left, 94), (PENDING.right - 8, PENDING.top))),
    Move(PENDING, FAILED, ((PENDING.right - 44, PENDING.top), (FAILED.left, 78)), dashed=True),
    Move(PENDING, PAUSED, ((236, PENDING.top), (236, PAUSED.bottom))),
    Move(PAUSED, PENDING, ((212, PAUSED.bottom), (212, PENDING.top))),
    Move(FAILED, PAUSED, ((FAILED.left, 44), (PAUSED.right, 44))),
    Move(PAUSED, FAILED, ((PAUSED.right, 60), (FAILED.left, 60))),
    Move(PENDING, CANCELED, ((PENDING.x, PENDING.bottom), (PENDING.x, 326), (CANCELED.left, 326))),
    Move(RUNNING, CANCELED, ((RUNNING.x, RUNNING.bottom), (RUNNING.x, 326), (CANCELED.left, 326))),
    Move(CANCELED, PENDING, ((CANCELED.left, 340), (228, 340), (228, PENDING.bottom)), dashed=True),
    Move(WAITING, PENDING, ((WAITING.left, 420), (196, 420), (196, PENDING.bottom))),
    Move(RUNNING, WAITING, ((526, RUNNING.bottom), (526, WAITING.top))),
    Move(WAITING, CANCELED, ((WAITING.right, 420), (764, 420), (764, CANCELED.bottom))),
    Move(CANCELED, WAITING, ((800, CANCELED.bottom), (800, 440), (WAITING.right, 440)), dashed=True),
    Move(FAILED, WAITING, ((FAILED.right, 74), (866, 74), (866, 476), (500, 476), (500, WAITING.bottom))),
    Move(PAUSED, CANCELED, ((PAUSED.left, 58), (60, 58), (60, 326), (CANCELED.left, 326))),
)
"""Every move between the states drawn here; tests/docs compares them with the state machine."""


def states() -> str:
    """The state machine."""
    labels = [
        label("enqueue", (126, 212)),
        label("claim", (370, 203)),
        label("retry after a failure,", (370, 250)),
        label("snooze, drain, lost worker", (370, 267)),
        label("the body returned", (640, 212)),
        label("nothing is left to try", (650, 168), "start"),
        label("no node knows its target", (478, 121), turned=-13),
        label("retry by hand", (545, 158), turned=-13),
        label("pause", (246, 130), "start"),
        label("resume", (202, 130), "end"),
        label("pause", (510, 36)),
        label("resume", (510, 77)),
        label("cancel", (610, 318)),
        label("a follower, with the retry of what canceled it", (356, 357)),
        label("enqueue with await_signal", (250, 458)),
        label("signal, or its timeout", (310, 412)),
        label("timed out, retries left", (534, 392), "start"),
        label("cancel", (690, 412)),
        label("retry by hand, if its signal never came", (690, 468)),
    ]
    moves = [arrow(*move.points, dashed=move.dashed) for move in MOVES]
    boxes = [box.drawn() for box in (PENDING, RUNNING, WAITING, PAUSED, SUCCEEDED, FAILED, CANCELED)]
    entries = [arrow((80, 220), (PENDING.left, 220)), arrow((150, 440), (WAITING.left, 440))]
    return picture("The states of a job", (880, 490), [*moves, *entries, *labels, *boxes])


# ------------------------------------------------------------------------------------------------------ life.svg


def life() -> str:
    """What becomes of one call: from `enqueue` to its end, and the ways back."""
    waits, runs = state(JobStatus.PENDING, 300, 120), state(JobStatus.RUNNING, 560, 120)
    ends = [
        state(JobStatus.SUCCEEDED, 828, 40),
        state(JobStatus.FAILED, 828, 120),
        state(JobStatus.CANCELED, 828, 200),
    ]
    fork = 650
    return picture(
        "The life of a job",
        (900, 330),
        [
            _code("charge.enqueue(42)", 96, 120),
            arrow((181, 120), (waits.left, 120)),
            label("stored", (209, 112)),
            arrow((waits.right, 120), (runs.left, 120)),
            label("claimed", (430, 112)),
            label("delay, run_at: waits for its time", (300, 86)),
            label("your function runs", (560, 86)),
            *(arrow((runs.right, 120), (fork, 120), (fork, end.y), (end.left, end.y)) for end in ends),
            label("it returned", (706, 32)),
            label("nothing is left", (706, 112)),
            label("canceled", (706, 192)),
            label("its result is kept", (828, 78)),
            label("its error is kept", (828, 158)),
            *_ways_back(runs.x, waits.x),
            *(box.drawn() for box in (waits, runs, *ends)),
        ],
    )


def _ways_back(start: float, end: float) -> list[str]:
    ways = [
        ("it raised, and retries are left", "after its backoff"),
        ("its worker died, or was stopped", "at its old due time"),
        ("it asked for later: ctx.snooze(30)", "after that delay"),
    ]
    drawn: list[str] = []
    for number, (cause, due) in enumerate(ways):
        y, out = 188 + 50 * number, 18 * (number - 1)  # the next one goes around the one before
        drawn += [
            arrow((start + out, 141), (start + out, y), (end - out, y), (end - out, 141)),
            label(cause, ((start + end) / 2, y - 7)),
            label(due, ((start + end) / 2, y + 16)),
        ]
    return drawn


def _code(text: str, x: float, y: float) -> str:
    place = f'x="{x - 85:g}" y="{y - 21:g}" width="170" height="42" rx="8"'
    return (
        f'<rect {place} fill="none" stroke="{LINE}" stroke-width="1.5"/>'
        f'<text x="{x:g}" y="{y + 4.5:g}" text-anchor="middle" {MONO} font-size="13" fill="{TEXT}">{text}</text>'
    )


PICTURES: Final[dict[str, Callable[[], str]]] = {"life.svg": life, "states.svg": states}


def main() -> None:
    """Write the pictures."""
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
        sys.stdout.write(f"docs/images/{name}: written\n")


if __name__ == "__main__":
    main()
