"""The parent's side of `child`: start them, let them go together, follow them, and stop them when all is done."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from windlass.errors import WindlassError

WORKER = ("-m", "windlass.cli.bench.child")
LONGEST_SILENCE = 60.0
"""Seconds without a single report after which a run is given up."""


class BenchError(WindlassError):
    """A workload did not come to its end."""


class Drained(NamedTuple):
    """What a run of children amounted to."""

    seconds: float
    """From the first child's readiness to the last commit."""
    ended: int
    """Jobs that ended, by what the children counted after their commits."""
    bodies: int
    codes: list[int]
    idle_memory: int
    peak_memory: int
    cpu: float
    """CPU time of the children from their readiness to their end, in seconds, as far as they report it."""
    starts: dict[int, float]
    commits: Counter[int]
    """How many commits of outcomes held how many jobs, as far as the children report it."""


class Children:
    """Several processes that drain one store together, and a thread for each that reads its reports.

    They are stopped by SIGTERM once all is done, unless their program `ends` by itself.
    """

    def __init__(
        self, url: str, *arguments: int, count: int = 1, program: Sequence[str] = WORKER, ends: bool = False
    ) -> None:
        command = [sys.executable, *program, url, *map(str, arguments)]
        self._ends = ends
        self._reports: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue()
        self._latest: list[dict[str, dict[str, Any]]] = [{} for _ in range(count)]
        self._children = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
        ]
        for number in range(count):
            threading.Thread(target=self._read, args=(number,), name=f"bench-child-{number}", daemon=True).start()

    def _read(self, number: int) -> None:
        for line in self._children[number].stdout or ():
            self._reports.put((number, json.loads(line)))
        self._reports.put((number, {"event": "closed"}))

    def __enter__(self) -> Self:
        self._follow(lambda: len(self._all("prepared")) == len(self._children))
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            with child:  # waits, and closes its pipes
                pass

    def go(self) -> None:
        """Let all begin, and return when they have."""
        for child in self._children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        self._follow(lambda: len(self._all("ready")) == len(self._children))

    def wait_for(self, expected: int) -> float:
        """Wait until that many jobs have ended, and return the time of the last end; the children continue."""
        self._follow(lambda: self._count() >= expected)
        return max(float(one["last"]) for one in self._all("count"))

    def finish(self, expected: int) -> Drained:
        """Follow until so many jobs have ended, then stop the children and add up what they report."""
        self._follow(lambda: self._count() >= expected or self._all_ended())
        for child in self._children:
            if not self._ends and child.poll() is None:
                child.terminate()
        self._follow(self._all_ended)
        ready, ends = self._all("ready"), self._all("end")
        return Drained(
            seconds=max(end["last"] for end in ends) - min(one["at"] for one in ready),
            ended=sum(end["count"] for end in ends),
            bodies=sum(end["bodies"] for end in ends),
            codes=[end["code"] for end in ends],
            idle_memory=max(one["rss"] for one in ready),
            peak_memory=max(end["peak"] for end in ends),
            cpu=sum(end.get("cpu", 0.0) for end in ends) - sum(one.get("cpu", 0.0) for one in ready),
            starts={number: at for end in ends for number, at in end["starts"]},
            commits=sum((Counter(dict(end.get("commits", ()))) for end in ends), Counter[int]()),
        )

    def _all(self, event: str) -> list[dict[str, Any]]:
        return [latest[event] for latest in self._latest if event in latest]

    def _all_ended(self) -> bool:
        return len(self._all("end")) == len(self._children)

    def _count(self) -> int:
        return sum(latest.get("end", latest.get("count", {"count": 0}))["count"] for latest in self._latest)

    def _follow(self, until: Callable[[], bool]) -> None:
        while not until():
            try:
                number, report = self._reports.get(timeout=LONGEST_SILENCE)
            except queue.Empty:
                raise BenchError(f"{self._count()} jobs ended, then none for {LONGEST_SILENCE:.0f} s") from None
            self._latest[number][report["event"]] = report
            if report["event"] == "closed" and "end" not in self._latest[number]:
                raise BenchError("a child ended without a report; its error stands above")
