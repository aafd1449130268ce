"""The processes of a run: started, killed, stopped, continued, replaced; every one is accounted for."""

import fcntl
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.chaos.witness import say
from tests.support.facts import is_sqlite, path_of
from tests.support.programs import Program
from tests.support.waiting import until
from windlass.domain.clock import monotonic

EXIT_TIMEOUT = 300.0


class Crew:
    """All children. None outlives the `with` block of its driver, which calls `close`."""

    def __init__(self, folder: Path, url: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._url = url
        self._environ = environ
        self._started = 0
        self.workers: list[Program] = []
        self.stopped: set[int] = set()
        self._ready: set[int] = set()
        self.submitter: Program | None = None
        self.odd_exits: list[str] = []

    def start(self, name: str, *arguments: object) -> Program:
        self._started += 1
        output = self._folder / f"{name}-{self._started}.log"
        module = f"tests.chaos.programs.{name}"
        return Program(module, tuple(map(str, arguments)), self._environ, output)

    def add_worker(self, concurrency: int) -> None:
        self.workers.append(self.start("worker", self._url, concurrency))

    def ready(self) -> list[Program]:
        """The workers that have begun to work."""
        for worker in self.workers:
            if worker.pid not in self._ready and "\nready " in f"\n{worker.printed}":
                self._ready.add(worker.pid)
        return [worker for worker in self.workers if worker.pid in self._ready]

    def at_work(self) -> list[Program]:
        """The workers that neither start nor stand still."""
        return [worker for worker in self.ready() if worker.pid not in self.stopped]

    # ------------------------------------------------------------------ faults

    def kill(self, dice: random.Random) -> bool:
        """SIGKILL to a worker, now and then to one that is just starting. False: there is none."""
        if not self.workers:
            return False
        at_work = self.at_work() if dice.random() < 0.9 else []
        victim = dice.choice(at_work or self.workers)
        say("fault", "kill", victim.pid, f"{monotonic():.6f}")
        victim.kill()
        self.workers.remove(victim)
        self.stopped.discard(victim.pid)
        return True

    def kill_submitter(self) -> None:
        if self.submitter is not None and self.submitter.process.poll() is None:
            say("fault", "kill submitter", self.submitter.pid, f"{monotonic():.6f}")
            self.submitter.kill()

    def stop(self, dice: random.Random, kind: str) -> Program | None:
        """SIGSTOP to a worker, as long as another one goes on. On SQLite mostly between two of its writes."""
        at_work = self.at_work()
        if len(at_work) < 2:
            return None
        victim = dice.choice(at_work)
        with _between_writes(self._url, careful=dice.random() < 0.7):
            say("fault", kind, victim.pid, f"{monotonic():.6f}")
            victim.freeze()
        self.stopped.add(victim.pid)
        return victim

    def resume(self, worker: Program) -> None:
        if worker.pid in self.stopped:
            self.stopped.discard(worker.pid)
            say("fault", "continue", worker.pid, f"{monotonic():.6f}")
            worker.resume()

    # ------------------------------------------------------------------ order

    @property
    def all_submitted(self) -> bool:
        """Whether the submitting process has made all its submissions."""
        return self.submitter is not None and self.submitter.process.poll() == 0

    def missing(self) -> Iterator[Program]:
        """Workers that ended although they were not killed."""
        for worker in list(self.workers):
            if worker.process.poll() is not None:
                self.workers.remove(worker)
                self.odd_exits.append(
                    f"worker {worker.pid} ended by itself with {worker.process.returncode}: {worker.output}"
                )
                yield worker

    def dismiss(self) -> None:
        """Continue stopped workers, ask all to drain, and check that they exit cleanly."""
        leaving = self.ready()
        for worker in leaving:
            self.resume(worker)
            worker.terminate()
        for worker in leaving:
            code = worker.exit_code(EXIT_TIMEOUT)
            if code != 0:
                self.odd_exits.append(f"worker {worker.pid} left with {code}: {worker.output}")

    def close(self) -> None:
        """Whatever happened: no process is left."""
        for child in [*self.workers, *([self.submitter] if self.submitter else [])]:
            if child.process.poll() is None:
                child.process.kill()
            child.process.wait(90)


@contextmanager
def _between_writes(url: str, *, careful: bool) -> Iterator[None]:
    """Hold what writers of a SQLite file queue for, if it can be had soon.

    Who is stopped in the middle of a write keeps its locks, and everybody waits for it: that happens too, but seldom.
    """
    with ExitStack() as held:
        if careful and is_sqlite(url):
            for name in ("turnstile", "lock"):
                file = held.enter_context(Path(f"{path_of(url)}-{name}").open("rb"))
                if not _locked(file.fileno()):
                    break
        yield


def _locked(descriptor: int) -> bool:
    def try_it() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        return until(try_it, "the file to be nobody's", 0.5)
    except AssertionError:
        return False
