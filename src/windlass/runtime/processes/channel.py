"""The job process's end of the channel to its worker: one message in at a time, messages out from any thread."""

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
"""Seconds between two progress reports; only the latest is sent."""


class Channel:
    """Messages over a socket. Closed in a process that a body forks: it must not answer a second time."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._incoming = self._socket.makefile("rb")
        self._sending = threading.RLock()
        after_fork(self._close_copy)

    def receive(self) -> ToProcess | None:
        """Return the next message; None once the worker has closed the channel."""
        try:
            length = self._incoming.read(LENGTH)
        except OSError:  # the worker has closed it before reading everything
            return None
        if len(length) < LENGTH:
            return None
        message: ToProcess = decode_to_process(self._incoming.read(int.from_bytes(length, "big")))
        return message

    def send(self, message: FromProcess) -> None:
        """Send a message; blocks until the worker has read the previous ones."""
        frame = framed(message)
        try:
            with self._sending:
                self._socket.sendall(frame)
        except OSError:
            pass  # the worker has died or closed the channel; `receive` will return None and end this process

    def _close_copy(self) -> None:
        self._sending = threading.RLock()  # a thread that the fork did not copy may have held it
        self._incoming.close()
        self._socket.close()

    @property
    def closed(self) -> bool:
        """Whether this is a forked copy."""
        return self._socket.fileno() < 0


class Reporter:
    """Sends what bodies report to the worker: progress at a bounded rate, and log lines to keep."""

    def __init__(self, channel: Channel) -> None:
        self.context: JobContext | None = None
        """The context of the running job."""
        self.keeps_log = False
        self._channel = channel
        self._lock = threading.Lock()
        self._latest: tuple[float, float | None, str] | None = None
        self._changed = threading.Event()
        self._sender: threading.Thread | None = None
        after_fork(self._reset_sender)

    def fields(self) -> LogFields:
        """Return the fields of log records made now."""
        context = self.context
        return OUTSIDE if context is None else fields_of(context)

    # ------------------------------------------------------------------ the context's reporter, and its only report

    def keeps(self, logger: str) -> bool:
        """Return whether lines of a logger are kept although its level would drop them."""
        return self.keeps_log and logger == JOB_LOGGER

    def open(self, claim: Claim, received: float) -> Reporter:
        """Return this reporter: a process runs one job at a time."""
        del claim, received
        return self

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report the job's progress."""
        with self._lock:
            self._latest = (done, total, fit(message))
            if self._sender is None:
                self._sender = threading.Thread(target=self._send_progress, name="windlass-progress", daemon=True)
                self._sender.start()
        self._changed.set()

    def line(self, record: logging.LogRecord) -> None:
        """Send a line to keep. Lines that pass the logger's level are sent anyway."""
        if not logging.getLogger(record.name).isEnabledFor(record.levelno):
            self._channel.send(log_records.line_of(record, self.fields()))

    def flush(self) -> None:
        """Send what was not sent yet: the job has ended."""
        with self._lock:
            latest, self._latest = self._latest, None
            if latest is not None:
                self._channel.send(ContextCall("progress", list(latest)))

    def _send_progress(self) -> None:
        pause = threading.Event()
        while self._changed.wait():
            self._changed.clear()
            self.flush()
            pause.wait(PACE)

    def _reset_sender(self) -> None:
        self._lock = threading.Lock()
        self._sender = None
