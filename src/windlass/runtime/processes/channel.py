"""The job's side of the channel to its worker: messages in, one at a time; messages out, from any thread."""

from __future__ import annotations

import logging
import socket
import threading

from windlass.context import JOB_LOGGER, JobContext
from windlass.domain.job import Claim
from windlass.runtime.forks import after_fork
from windlass.runtime.logcontext import OUTSIDE, LogFields, fields_of
from windlass.runtime.processes import log_records
from windlass.runtime.processes.messages import (
    LENGTH,
    ContextCall,
    FromProcess,
    ToProcess,
    decode_to_process,
    fit,
    framed,
)

PACE = 0.05
"""Seconds between two reports of progress; the latest word counts."""


class Channel:
    """Messages over a socket. A copy of this process that a body forks has none: it must not answer twice."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._incoming = self._socket.makefile("rb")
        self._sending = threading.RLock()
        after_fork(self._close_copy)

    def receive(self) -> ToProcess | None:
        """The next message; None once the worker wants no more of this process."""
        try:
            length = self._incoming.read(LENGTH)
        except OSError:  # it has let go without hearing us out
            return None
        if len(length) < LENGTH:
            return None
        message: ToProcess = decode_to_process(self._incoming.read(int.from_bytes(length, "big")))
        return message

    def send(self, message: FromProcess) -> None:
        """Say something; waits as long as the worker has not read what was said before."""
        frame = framed(message)
        try:
            with self._sending:
                self._socket.sendall(frame)
        except OSError:
            pass  # the worker is gone, or has let go of us, and we end with the next message that does not come

    def _close_copy(self) -> None:
        self._sending = threading.RLock()  # it may have been held by a thread that is not here
        self._incoming.close()
        self._socket.close()

    @property
    def closed(self) -> bool:
        """Whether this is a forked copy."""
        return self._socket.fileno() < 0


class Reporter:
    """What bodies say of themselves, passed on to the worker: progress at a pace it can follow, lines to keep."""

    def __init__(self, channel: Channel) -> None:
        self.context: JobContext | None = None
        """The job that runs now."""
        self.keeps_log = False
        self._channel = channel
        self._lock = threading.Lock()
        self._latest: tuple[float, float | None, str] | None = None
        self._news = threading.Event()
        self._teller: threading.Thread | None = None
        after_fork(self._forget_teller)

    def fields(self) -> LogFields:
        """The fields of log records made now."""
        context = self.context
        return OUTSIDE if context is None else fields_of(context)

    # ------------------------------------------------------------------ the context's reporter, and its only report

    def keeps(self, logger: str) -> bool:
        """Whether lines of a logger are kept although its level would drop them."""
        return self.keeps_log and logger == JOB_LOGGER

    def open(self, claim: Claim, received: float) -> Reporter:
        """One job runs at a time."""
        del claim, received
        return self

    def tell(self, done: float, total: float | None, message: str) -> None:
        """How far the job is now."""
        with self._lock:
            self._latest = (done, total, fit(message))
            if self._teller is None:
                self._teller = threading.Thread(target=self._tell, name="windlass-progress", daemon=True)
                self._teller.start()
        self._news.set()

    def line(self, record: logging.LogRecord) -> None:
        """A line to keep. Those that the logger's level lets through are sent anyway."""
        if not logging.getLogger(record.name).isEnabledFor(record.levelno):
            self._channel.send(log_records.line_of(record, self.fields()))

    def flush(self) -> None:
        """Say what was not said yet: the job has ended."""
        with self._lock:
            latest, self._latest = self._latest, None
            if latest is not None:
                self._channel.send(ContextCall("progress", list(latest)))

    def _tell(self) -> None:
        pause = threading.Event()
        while self._news.wait():
            self._news.clear()
            self.flush()
            pause.wait(PACE)

    def _forget_teller(self) -> None:
        self._lock = threading.Lock()
        self._teller = None
