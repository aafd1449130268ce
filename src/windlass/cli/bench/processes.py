"""The parent's side of `child`: start them, let them go together, follow them, and stop them when all is done."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from windlass.domain.clock import monotonic
from windlass.errors import WindlassError

WORKER, BARE, LISTENER = "work", "floor", "hear"
"""What a child can be."""
PROGRAM = ("-m", "windlass.cli.bench.child")
START_PATIENCE = 60.0
STALL_PATIENCE = 60.0
"""Seconds without a single commit after which a run is given up."""


class BenchError(WindlassError):
    """A workload did not come to its end."""


class Drained(NamedTuple):
    """What a run of children amounted to."""

    seconds: float
    """From the first child's readiness to the last commit."""
    ended: int
    """Jobs that ended, by what the children were told after their commits."""
    bodies: int
    codes: list[int]
    idle_memory: int
    peak_memory: int
    starts: dict[int, float]


class Child:
    """One process, and a thread that reads its lines."""

    def __init__(self, number: int, command: Sequence[str], events: queue.Queue[dict[str, Any]]) -> None:
        self.number = number
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._events = events
        threading.Thread(target=self._read, name=f"windlass-bench-child-{number}", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._events.put({"child": self.number, **json.loads(line)})
        self._events.put({"child": self.number, "event": "closed"})

    def go(self) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Children:
    """Several processes that drain one store together."""

    def __init__(
        self,
        kind: str,
        url: str,
        argument: int,
        count: int = 1,
        *,
        program: Sequence[str] = PROGRAM,
        extra: Sequence[str] = (),
    ) -> None:
        command = [sys.executable, *program, kind, url, str(argument), *extra]
        self._kind = kind
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._counts = [0] * count
        self._ready: list[dict[str, Any]] = []
        self._ends: list[dict[str, Any]] = []
        self._children = [Child(number, command, self._events) for number in range(count)]

    def __enter__(self) -> Self:
        self._wait_for("prepared")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for child in self._children:
            child.close()

    def go(self) -> None:
        """Let all begin, and return when they have."""
        for child in self._children:
            child.go()
        self._ready = self._wait_for("ready")

    def _wait_for(self, event: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        deadline = monotonic() + START_PATIENCE
        while len(found) < len(self._children):
            try:
                seen = self._events.get(timeout=max(deadline - monotonic(), 0.0))
            except queue.Empty:
                raise BenchError(f"a child did not get {event} within {START_PATIENCE:.0f} s") from None
            if seen["event"] == "closed":
                raise BenchError(f"a child ended before it was {event}; its error stands above")
            if seen["event"] == event:
                found.append(seen)
            else:
                self._note(seen)
        return found

    def finish(self, expected: int, progress: Callable[[int], None]) -> Drained:
        """Follow until so many jobs have ended, then stop the children and add up what they say."""
        while sum(self._counts) < expected and len(self._ends) < len(self._children):
            self._note(self._next(sum(self._counts), expected))
            progress(sum(self._counts))
        for child in self._children:
            if self._kind == WORKER and child.process.poll() is None:  # the others end by themselves
                child.process.terminate()
        while len(self._ends) < len(self._children):
            self._note(self._next(sum(self._counts), expected))
        return self._sum()

    def _next(self, done: int, expected: int) -> dict[str, Any]:
        try:
            return self._events.get(timeout=STALL_PATIENCE)
        except queue.Empty:
            raise BenchError(f"{done} of {expected} jobs ended, then none for {STALL_PATIENCE:.0f} s") from None

    def _note(self, seen: dict[str, Any]) -> None:
        if seen["event"] in ("count", "end"):
            self._counts[seen["child"]] = seen["count"]
        if seen["event"] == "end":
            self._ends.append(seen)
        elif seen["event"] == "closed" and not any(end["child"] == seen["child"] for end in self._ends):
            raise BenchError("a child ended without a report; its error stands above")

    def _sum(self) -> Drained:
        ends: Sequence[dict[str, Any]] = self._ends
        return Drained(
            seconds=max(end["last"] for end in ends) - min(ready["at"] for ready in self._ready),
            ended=sum(end["count"] for end in ends),
            bodies=sum(end["bodies"] for end in ends),
            codes=[end["code"] for end in ends],
            idle_memory=max(ready["rss"] for ready in self._ready),
            peak_memory=max(end["peak"] for end in ends),
            starts={number: at for end in ends for number, at in end["starts"]},
        )
