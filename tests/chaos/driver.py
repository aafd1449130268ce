"""One chaos run: workers, submissions and faults by plan, then the dust settles and the oracle judges."""

import heapq
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from tests.chaos import witness
from tests.chaos.application import CLOCK, SettableClock
from tests.chaos.crew import Crew
from tests.chaos.desk import Desk
from tests.chaos.facts import Facts, Tables, read_tables
from tests.chaos.faults import Options, Planned, plan
from tests.chaos.leases import worker_of
from tests.chaos.oracle import AT_ANY_MOMENT, Violation, judge
from tests.chaos.watch import Sight, Watch
from tests.chaos.witness import say
from tests.chaos.workload import orders
from tests.support.facts import rows
from windlass.domain.clock import monotonic
from windlass.testing.embedded_postgres import EmbeddedPostgres

TICK = 0.05
LOOK_EVERY = 0.5
STOPPED_AT_MOST = 5
"""Leases after which a stopped worker is continued although its jobs were not claimed: it may have had none."""
TIMEOUT = 60.0
"""Seconds to wait, before a worker is killed or stopped, for another one to be running: otherwise no node recovers."""
ORPHAN_SLACK = 20.0
"""Seconds beyond two leases and two looks for which a claim may have no live owner, on a busy machine."""
CUT_ALL_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


class Standing:
    """How a run stands: what is shown while it goes on."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.began = monotonic()
        self.sight = Sight(0, 0)
        self.faults: Counter[str] = Counter()
        self.workers = 0
        self.violations: list[Violation] = []


class Driver:
    """Runs one plan. Everything random comes from the seed."""

    def __init__(self, options: Options, url: str, folder: Path, server: EmbeddedPostgres | None = None) -> None:
        self._options = options
        self._server = server
        self._dice = random.Random(f"driver/{options.seed}")
        self._witness = folder / "witness"
        self._witness.touch()
        clock = folder / "clock"
        self._clock = SettableClock(clock) if options.jumps else None
        self.environ = {witness.PLACE: str(self._witness), "CHAOS_BROKEN": options.broken, **options.environ}
        self.environ |= {CLOCK: str(clock)} if options.jumps else {}
        self.url = url
        self._crew = Crew(folder, url, self.environ)
        limit = 4 * options.lease + 2 * options.scan + ORPHAN_SLACK
        self._watch = Watch(url, self._clock, limit)
        self._tail = witness.Tail(self._witness)
        self._waiting_to_be_lost: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._next_look = 0.0
        self._next_judgement = 0.0
        self._orders = orders(options.mix, options.seed, options.jobs)
        self.standing = Standing(options)

    def run(self, show: Callable[[Standing], None] = lambda standing: None) -> Facts:
        """The whole run, and what there is to judge by."""
        self._show = show
        with self._surroundings():
            desk = Desk(self._options, self.url)
            desk.open()
            try:
                self._begin()
                self._chaos(desk)
                self._settle(desk)
                if not self.cut_short:
                    self._crew.dismiss()
            finally:
                self._crew.close()
                desk.close()
            return self._facts(read_tables(partial(rows, self.url)))

    # ------------------------------------------------------------------ the parts of a run

    def _begin(self) -> None:
        for _ in range(self._options.workers):
            self._crew.add_worker(self._options.concurrency)
        self._until(lambda: len(self._crew.ready()) == self._options.workers, 120)
        self.standing.began = monotonic()

    def _chaos(self, desk: Desk) -> None:
        faults = plan(self._options)
        mine = self._options.jobs * 2 // 3
        lasts = sum(fault.after for fault in faults)
        per_second = (self._options.jobs - mine) / max(lasts, 1)
        what = (self._options.mix, self._options.seed, mine, self._options.jobs)
        self._submitter = (self.url, *what, per_second)
        self._crew.submitter = self._crew.start("submitter", *self._submitter)
        ordered = 0
        for number, fault in enumerate(faults, 1):
            upto = mine * number // len(faults)
            desk.submit(ordered, upto)
            ordered = upto
            self._pause(fault.after)
            self._inject(fault)
            if self.cut_short:
                return
        desk.submit(ordered, mine)
        desk.submit(mine, mine)  # cancels what is left to cancel

    def _settle(self, desk: Desk) -> None:
        """Until every submission is made and every job has ended, or the patience has."""

        def at_rest() -> bool:
            return (
                desk.idle
                and self._crew.all_submitted
                and not self._crew.stopped
                and len(self._crew.workers) == self._options.workers
                and self.standing.sight.live == 0
                and self.standing.sight.ended > 0
                and monotonic() - self.standing.began > 3 * self._options.lease
            )

        self._until(at_rest, self._options.settle)
        if desk.failure is not None and not self.cut_short:  # a broken build's tables may refuse the desk as well
            raise desk.failure
        if not (self._crew.all_submitted or self.cut_short):
            self._crew.odd_exits.append("the submitter did not come to its end")

    def judge(self, facts: Facts) -> list[Violation]:
        """What the oracle says; of a run that never came to rest only what must hold at any moment."""
        return judge(facts, AT_ANY_MOMENT) if self.cut_short else judge(facts)

    def _facts(self, tables: Tables) -> Facts:
        return Facts(
            account=witness.read(self._witness),
            tables=tables,
            began=self.standing.began,
            ended=monotonic(),
            lease_seconds=self._options.lease,
            orphans=self._watch.found(),
            odd_exits=tuple(self._crew.odd_exits),
            orders=self._orders,
        )

    # ------------------------------------------------------------------ faults

    def _inject(self, fault: Planned) -> None:
        if fault.kind in {"kill", "stop", "nap"}:
            self._until(lambda: len(self._crew.at_work()) > 1, TIMEOUT)
        self.standing.faults[fault.kind] += 1
        match fault.kind:
            case "kill":
                if self._crew.kill(self._dice):
                    self._later(fault.seconds, lambda: self._crew.add_worker(self._options.concurrency))
            case "nap":
                napping = self._crew.stop(self._dice, "nap")
                if napping is not None:
                    self._later(fault.seconds, lambda: self._crew.resume(napping))
            case "stop":
                self._stop(fault.seconds)
            case "kill submitter":
                self._crew.kill_submitter()
                self._later(0.2, self._start_submitter)
            case "jump":
                assert self._clock is not None
                say("fault", "jump", 0, f"{monotonic():.6f}")
                self._clock.jump(fault.seconds)
                self._watch.begin_anew()
            case "restart":
                assert self._server is not None
                say("fault", "restart", 0, f"{monotonic():.6f}")
                self._server.restart(immediately=self._dice.random() < 0.5)
                self._watch.begin_anew()
            case "cut":
                say("fault", "cut", 0, f"{monotonic():.6f}")
                rows(self.url, CUT_ALL_SESSIONS)

    def _stop(self, seconds: float) -> None:
        """Until others have its jobs, and a while longer; or for long enough, if no node claims them."""
        stopped = self._crew.stop(self._dice, "stop")
        if stopped is not None:
            self._waiting_to_be_lost[stopped.pid] = lambda: self._later(seconds, lambda: self._crew.resume(stopped))
            self._later(STOPPED_AT_MOST * self._options.lease, lambda: self._lost(stopped.pid))

    def _lost(self, pid: int) -> None:
        self._waiting_to_be_lost.pop(pid, lambda: None)()

    def _start_submitter(self) -> None:
        self._crew.submitter = self._crew.start("submitter", *self._submitter)

    # ------------------------------------------------------------------ time passes

    @property
    def cut_short(self) -> bool:
        """Whether it ended at its first violation, and so never came to rest."""
        return self._options.until_violation and bool(self.standing.violations)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (monotonic() + seconds, next(self._numbers), action))

    def _pause(self, seconds: float) -> None:
        self._until(lambda: False, seconds)

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Let time pass, and do what is due meanwhile."""
        ends_at = monotonic() + seconds
        pause = threading.Event()
        while not condition() and monotonic() < ends_at and not self.cut_short:
            self._pump()
            pause.wait(TICK)

    def _pump(self) -> None:
        while self._timers and self._timers[0][0] <= monotonic():
            heapq.heappop(self._timers)[2]()
        for words in self._tail.lines():
            if words[0] == "taken":
                self._lost(worker_of(words[1]))
        for _ in self._crew.missing():
            self._crew.add_worker(self._options.concurrency)
        if monotonic() >= self._next_look:
            self._look()

    def _look(self) -> None:
        sight = self._watch.look()
        if sight is not None:
            self.standing.sight = sight
        self.standing.workers = len(self._crew.workers) - len(self._crew.stopped)
        now = monotonic()
        if sight is not None and now >= self._next_judgement:
            self._judge_so_far()
            self._next_judgement = monotonic() + max(2.0, 10 * (monotonic() - now))  # a tenth of the time at most
        self._next_look = monotonic() + LOOK_EVERY
        self._show(self.standing)

    def _judge_so_far(self) -> None:
        """The account first: of a claim that it names the store then knows whose it was."""
        facts = self._facts(Tables())
        facts = replace(facts, tables=read_tables(partial(rows, self.url)))
        self.standing.violations = judge(facts, AT_ANY_MOMENT)

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """Jobs submitted from this process are witnessed, and go by the clock of the run, like all others."""
        before = {name: os.environ.get(name) for name in self.environ}
        os.environ.update(self.environ)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
