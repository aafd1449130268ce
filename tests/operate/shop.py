"""What the runbook is tried on: a pipeline that pays, one that measures, and a bank that may be closed."""

import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from windlass import DoNotRetry, ExecutionHandle, JobContext, Pipeline, RejectItem, Windlass

MOST_BILLED = 10
"""Number of open executions of billing at which it takes no more."""
FACTORS = {"cm": 10}
"""The business rule: a unit that is not in it is rejected."""


class Bank:
    """A server on a socket of its own. It refuses connections while it is closed, and remembers the keys of calls."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.keys: list[str] = []
        self.answers = threading.Event()
        """Cleared: it takes calls, and does not answer them."""
        self.answers.set()
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self.place.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.place))
        self._socket.listen(128)
        self._thread = threading.Thread(target=self._serve, args=(self._socket,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.answers.set()
        if self._socket is None or self._thread is None:
            return
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._thread.join()
        self._socket.close()
        self._socket = self._thread = None

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                self.keys.append(connection.recv(1_000).decode())
                self.answers.wait(90)
                connection.sendall(b"ok")


def pay(place: Path, key: str) -> None:
    """Call the bank; ConnectionError while it is closed."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(place))
        except OSError as error:
            raise ConnectionError("the bank does not answer") from error
        connection.sendall(key.encode())
        assert connection.recv(10) == b"ok"


class Shop(NamedTuple):
    """An application with all that the runbook is tried on."""

    app: Windlass
    pipelines: Mapping[str, Pipeline]

    def ended(self, name: str, *values: Any, timeout: float = 90.0) -> list[ExecutionHandle]:
        """Submit executions, and have a worker run them to their end."""
        runs = self.pipelines[name].submit_many(values)
        with self.app.worker():
            for run in runs:
                run.join(timeout)
        return runs


def declare(app: Windlass, bank: Path, tenants: Sequence[str] | None = ("default",)) -> Shop:
    """Declare what the runbook is tried on; `tenants` are those that billing accepts, None is any."""
    made = [_pays(app, "payments", bank, dlq=True), _pays(app, "receipts", bank, dlq=False)]
    made += [_measures(app, "readings", kept=True), _measures(app, "meters", kept=False), _transfers(app, bank)]
    made += [_prints(app), *_labels(app), *_sells(app, tenants)]
    return Shop(app, {pipeline.name: pipeline for pipeline in made})


def _transfers(app: Windlass, bank: Path) -> Pipeline:
    pipeline = app.pipeline("transfers", retry_limit=20, retry_wait=0.01, max_backoff=0.01)

    @pipeline.step(circuit="bank")
    def transfer(cents: int, ctx: JobContext) -> int:
        pay(bank, str(ctx.effect_key))
        return cents

    return pipeline


def _sells(app: Windlass, tenants: Sequence[str] | None) -> list[Pipeline]:
    """One pipeline that publishes, and one that subscribes."""
    sales = app.pipeline("sales")

    @sales.expand
    def invoices(order: dict[str, int]) -> Iterator[dict[str, int]]:
        for number in range(order["first"], order["first"] + order["count"]):
            yield {"number": number, "cents": order["cents"]}

    sales.publish("invoices", key=lambda invoice: f"invoice-{invoice['number']}")
    billing = app.pipeline("billing", subscribe="invoices", tenants=tenants, max_in_flight=MOST_BILLED, queue="billing")

    @billing.step
    def bill(invoice: dict[str, int]) -> int:
        return invoice["cents"]

    return [sales, billing]


def _prints(app: Windlass) -> Pipeline:
    pipeline = app.pipeline("prints", retry_wait=3600, max_backoff=3600, jitter=False)

    @pipeline.step(resource="press")
    def press(text: str) -> str:
        if text == "broken":
            raise ValueError("jam")
        return f"{text} printed"

    return pipeline


def _labels(app: Windlass) -> list[Pipeline]:
    """Two versions, the first of which was deployed with other steps before."""
    made = [app.pipeline("labels", version=version) for version in ("1", "2")]
    for pipeline in made:
        pipeline.step(name="label")(_label)
    return made


def _label(text: str) -> str:
    return f"label: {text}"


def _pays(app: Windlass, name: str, bank: Path, *, dlq: bool) -> Pipeline:
    pipeline = app.pipeline(name, retry_limit=1, retry_wait=0.01, dlq=dlq)

    @pipeline.step
    def check(cents: int) -> int:
        return cents

    @pipeline.step
    def charge(cents: int, ctx: JobContext) -> int:
        if cents < 0:
            raise DoNotRetry(f"{cents} is no amount")
        pay(bank, str(ctx.effect_key))
        return cents

    @pipeline.step
    def receipt(cents: int) -> str:
        return f"{cents} paid"

    return pipeline


def _measures(app: Windlass, name: str, *, kept: bool) -> Pipeline:
    pipeline = app.pipeline(name, include_payload=kept)

    @pipeline.expand
    def rows(text: str) -> Iterator[str]:
        yield from text.split(",")

    @pipeline.step(retry_limit=0, recover_on_failure=True)
    def millimetres(row: str) -> int:
        number, unit = row.split()
        if int(number) < 0:
            raise RejectItem("a length is not negative")
        return int(number) * FACTORS[unit]

    @pipeline.reduce
    def longest(lengths: Iterable[int]) -> int:
        return max(lengths, default=0)

    return pipeline
