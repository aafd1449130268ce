"""The driver's own submissions and cancels, on a thread: a store that hangs must not block the driver."""

import queue
import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.chaos.application import make_app, protect
from tests.chaos.faults import Options
from tests.chaos.pipelines import SUBSCRIBERS, pipeline_of
from tests.chaos.witness import NOTHING, say
from tests.chaos.workload import Execution, Made, call, is_unwanted, key_of
from windlass import JobHandle, StoreUnavailableError
from windlass.domain.clock import monotonic

MAX_AT_ONCE = 40
KEYED_EVERY = 7


class Desk:
    """Takes orders in turn."""

    def __init__(self, options: Options, url: str) -> None:
        self._options = options
        self._dice = random.Random(f"desk/{options.seed}")
        self._app = make_app(url)
        self._orders: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="desk", daemon=True)
        self._keyed: list[int] = []
        self._unwanted: list[JobHandle[Any]] = []
        self.accepted = 0
        self.failure: BaseException | None = None
        """What went wrong here: then the run is worth nothing."""

    def open(self) -> None:
        self._app.migrate()
        protect(self._app)
        self._thread.start()

    def submit(self, first: int, last: int) -> None:
        """Order the jobs of these numbers, in bulks and one by one."""
        self._orders.put(lambda: self._submit(first, last))

    def close(self) -> None:
        """Do what was ordered, and leave."""
        self._orders.put(None)
        self._thread.join()
        self._app.close()

    @property
    def idle(self) -> bool:
        """Whether everything that was ordered is done."""
        return self._orders.unfinished_tasks == 0

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                order()
            except BaseException as error:  # noqa: BLE001 - reported by the driver
                self.failure = error
            finally:
                self._orders.task_done()

    def _submit(self, first: int, last: int) -> None:
        """Half of what is not wanted is canceled at once, half when the next order comes: it mostly runs by then."""
        waiting, self._unwanted = self._unwanted, []
        while first < last:
            upto = min(last, first + self._dice.choice([1, 1, 3, MAX_AT_ONCE]))
            self._store_all([self._call(number) for number in range(first, upto)])
            first = upto
        if self._keyed:  # somebody asks again for what was asked before
            self._store_all([self._call(self._dice.choice(self._keyed))])
        for handle in waiting:
            self._cancel(handle)

    def _call(self, number: int) -> Made:
        what = (self._app, self._options.mix, self._options.seed, number)
        if number % KEYED_EVERY:
            return call(*what)
        self._keyed.append(number)
        return call(*what, f"desk-{number}")

    def _store_all(self, made: list[Made]) -> None:
        """Jobs and flows in one bulk, the executions of each pipeline in another one."""
        calls = [one for one in made if not isinstance(one, Execution)]
        if calls:
            self._store(calls, lambda: self._app.enqueue_many(calls) if len(calls) > 1 else [calls[0].enqueue()])
        for name in SUBSCRIBERS:
            some = [one for one in made if isinstance(one, Execution) and one.order.pipeline == name]
            if some:
                self._store(some, partial(self._submit_many, name, some))

    def _submit_many(self, name: str, executions: list[Execution]) -> Sequence[Any]:
        keys = [one.key for one in executions]
        return pipeline_of(self._app, name).submit_many([one.order for one in executions], keys=keys)

    def _store(self, calls: Sequence[Made], store: Callable[[], Sequence[Any]]) -> None:
        try:
            handles = store()
        except StoreUnavailableError:
            return  # it may be stored or not; if it is, it must end like any other
        for made, handle in zip(calls, handles, strict=True):
            say("accepted", handle.id, key_of(made) or NOTHING, f"{monotonic():.6f}")
            self.accepted += 1
            if is_unwanted(made):
                if self._dice.random() < 0.5:
                    self._cancel(handle)
                else:
                    self._unwanted.append(handle)

    def _cancel(self, handle: JobHandle[Any]) -> None:
        try:
            canceled = handle.cancel()
        except StoreUnavailableError:
            return  # it may be canceled or not
        if canceled:
            say("canceled", handle.id, f"{monotonic():.6f}")
