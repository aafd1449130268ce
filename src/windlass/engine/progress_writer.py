"""Writes what running jobs report, a few times a second: progress and the log lines that are kept.

Bodies never block: they store their latest progress, or a line, and continue. A service writes for all attempts of the
node together; an attempt's last reports are written before its outcome. Nothing here touches the job's own rows.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from windlass import loggers
from windlass.context import JOB_LOGGER
from windlass.domain.clock import monotonic
from windlass.domain.job import Claim
from windlass.engine.attempt import Attempt
from windlass.errors import StoreStatementError, StoreUnavailableError
from windlass.failure.guarded_sanitizer import GuardedSanitizer
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.settings import JobsSettings
from windlass.stores.database import Database, StoreDataError
from windlass.stores.plans import progress_reports
from windlass.stores.plans.progress_reports import LineRow, ProgressRow, ReportBatch

logger = loggers.logger("windlass.reports")

INTERVAL = 0.25
"""Seconds for which reports are gathered before they are written.

A job that ends sooner writes its last ones itself.
"""
LINES_AT_A_TIME = 1000
BUFFER = 10_000
"""Number of lines that may wait to be written; further ones are dropped, which is noted in the log."""
LONGEST_LINE = 2000
LONGEST_SEARCHED = 8000
"""Characters of a text that are searched for secrets, far more than are kept; the rest is cut off."""
LONGEST_MESSAGE = 500
LONGEST_NAME = 200
ROOM_FOR_TRACEBACK = 200
HIGHEST_LEVEL = 2**15 - 1


class _Line(NamedTuple):
    """A line that waits to be written. Without text it marks where lines were lost."""

    report: AttemptReport
    moment: float
    level: int
    logger: str
    text: str | None


class AttemptReport:
    """The unwritten reports of one attempt. Created with its first report."""

    def __init__(self, node: Reports, claim: Claim, received: float) -> None:
        self.claim = claim
        self.waiting = False
        """Whether its progress waits to be written."""
        self.latest: tuple[float, float | None, str, float] | None = None
        self.lost = 0
        """Lines dropped since this was last written."""
        self._node = node
        self._received = received
        self._logged = count(1)
        self._numbers = count(1)

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report the attempt's progress."""
        self.latest = (done, total, message, monotonic())
        if not self.waiting:  # after `latest` is set: the writer reads both in the other order
            self.waiting = True
            self._node.changed(self)

    def line(self, record: logging.LogRecord) -> None:
        """Keep a line, unless the attempt has reached its limit."""
        node, logged = self._node, next(self._logged)
        if logged <= node.most_lines:
            node.add_line(_Line(self, monotonic(), record.levelno, record.name, node.text_of(record)))
        elif logged == node.most_lines + 1:
            text = f"[no more lines of this attempt are kept: jobs.max_log_lines is {node.most_lines}]"
            node.add_line(_Line(self, monotonic(), logging.WARNING, JOB_LOGGER, text))

    def progress_row(self, latest: tuple[float, float | None, str, float], message: str) -> ProgressRow:
        """Return its progress as it is stored."""
        done, total, _, moment = latest
        return ProgressRow(self.claim.job_id, self.claim.fence, done, total, message, self._store_time(moment))

    def line_row(self, line: _Line, name: str, text: str) -> LineRow:
        """Return a line as it is stored. Numbered by one thread, so that a reader of lines misses none."""
        claim, at, level = self.claim, self._store_time(line.moment), min(line.level, HIGHEST_LEVEL)
        return LineRow(claim.job_id, claim.fence, next(self._numbers), claim.attempts + 1, at, level, name, text)

    def _store_time(self, moment: float) -> int:
        return self.claim.picked_at + int((moment - self._received) * 1_000_000)


class Reports(Service):
    """Gathers the reports of a node's attempts, and writes them."""

    def __init__(
        self, database: Database, settings: JobsSettings, sanitizer: GuardedSanitizer, errors: ErrorHandling
    ) -> None:
        super().__init__("reports", errors)
        self.most_lines = settings.max_log_lines
        self._keep = settings.keep_logs
        self._database = database
        self._sanitizer = sanitizer
        self._name = lru_cache(512)(lambda name: sanitizer.sanitize_text(name)[:LONGEST_NAME])
        self._changed: deque[AttemptReport] = deque()
        self._lines: deque[_Line] = deque()
        self._unwritten: ReportBatch | None = None
        self._writing = asyncio.Lock()
        self._losing = threading.RLock()
        self._lost = self._logged_lost = False
        self._resting = True

    # ------------------------------------------------------------------ called by bodies, on any thread

    def keeps(self, name: str) -> bool:
        """Return whether lines of a logger are kept."""
        return self._keep == "all" or (self._keep == "job" and name == JOB_LOGGER)

    def open(self, claim: Claim, received: float) -> AttemptReport:
        """Return the report of an attempt."""
        return AttemptReport(self, claim, received)

    def changed(self, report: AttemptReport) -> None:
        """Have an attempt's progress written."""
        self._changed.append(report)
        self._wake_if_resting()

    def add_line(self, line: _Line) -> None:
        """Take a line, or record that it was dropped."""
        if len(self._lines) < BUFFER:
            self._lines.append(line)
        else:
            with self._losing:
                if not line.report.lost:
                    self._lines.append(line._replace(level=logging.WARNING, logger=JOB_LOGGER, text=None))
                line.report.lost += 1
                self._lost = True
        self._wake_if_resting()

    def text_of(self, record: logging.LogRecord) -> str:
        """Return a record's message and the end of its traceback, without secrets. At once.

        Its arguments may change.
        """
        try:
            text = record.getMessage()
        except Exception as broken:  # noqa: BLE001 - arguments that do not fit, or cannot be printed
            text = f"{record.msg if isinstance(record.msg, str) else ''} [not formatted: {type(broken).__name__}]"
        text = self._clean(text, LONGEST_LINE)
        error = record.exc_info[1] if record.exc_info else None
        room = LONGEST_LINE - len(text) - 1
        if error is not None and room >= ROOM_FOR_TRACEBACK:
            text = f"{text}\n{self._sanitizer.traceback_tail(error, room)}"
        elif record.exc_text and room >= ROOM_FOR_TRACEBACK:  # of a record that was made in another process
            text = f"{text}\n{self._sanitizer.printed_traceback(record.exc_text, room)}"
        return text

    def _clean(self, text: str, length: int) -> str:
        whole = len(text) <= LONGEST_SEARCHED
        if not whole:  # at a space if there is one: half a secret may not be recognised
            space = text.rfind(" ", LONGEST_LINE, LONGEST_SEARCHED)
            text = text[: space if space > 0 else LONGEST_SEARCHED]
        text = self._sanitizer.sanitize_text(text)
        return text if whole and len(text) <= length else f"{text[: length - 1]}…"

    def _wake_if_resting(self) -> None:
        if self._resting:
            self.wake()

    # ------------------------------------------------------------------ called by the node, on its loop

    def before(self, batch: Sequence[Attempt]) -> Awaitable[None] | None:
        """Return what to await before outcomes are written: afterwards late reports are refused."""
        if not (self._waiting or self._writing.locked()):
            return None
        reported = any(attempt.context is not None and attempt.context.reported for attempt in batch)
        return self._write_last() if reported else None

    async def _write_last(self) -> None:
        try:
            await self.flush()
        except StoreUnavailableError:
            raise  # then the outcomes cannot be written either, and both are retried
        except Exception:  # noqa: BLE001 - outcomes matter more; the next tick meets the same error, and logs it
            return

    async def tick(self) -> float | None:
        """Write what was gathered, and sleep until woken when nothing is reported."""
        if self._resting:
            self._resting = False
            return INTERVAL
        if self._lost and not self._logged_lost:
            self._logged_lost = True
            logger.warning("dropping log lines of jobs: %d lines wait for the store, which is the limit", BUFFER)
        await self.flush()
        self._lost = self._logged_lost = False
        self._resting = True
        if not self._waiting:  # checked after `_resting` is set: later reports wake the service
            return None
        self._resting = False
        return INTERVAL

    @property
    def _waiting(self) -> bool:
        return bool(self._changed or self._lines or self._unwritten)

    async def flush(self) -> None:
        """Write everything that was reported until now."""
        for _ in range(2 + len(self._lines) // LINES_AT_A_TIME):
            async with self._writing:
                if not self._waiting:
                    return
                await self._write()

    async def close(self, timeout: float) -> None:
        """Stop, and write what is left, for up to `timeout` seconds."""
        await self.stop()
        try:
            await asyncio.wait_for(self.flush(), timeout)
        except (TimeoutError, StoreUnavailableError):
            logger.error("the store does not answer: some log lines and progress of jobs were not written")
        except StoreStatementError as error:
            logger.error("some log lines and progress of jobs were not written: %s", self._sanitizer.sanitize(error))

    async def _write(self) -> None:
        """Write one batch; it is kept until it is written, so that nothing newer overtakes it."""
        batch = self._unwritten = self._unwritten or self._take()
        try:
            await self._database.arun(progress_reports.save, batch)
        except StoreDataError as error:
            logger.error(
                "the database refused progress of %d jobs and %d log lines, which are lost: %s",
                len(batch.progress),
                len(batch.lines),
                self._sanitizer.sanitize(error),
            )
        self._unwritten = None

    def _take(self) -> ReportBatch:
        progress: dict[str, ProgressRow] = {}
        for _ in range(len(self._changed)):  # counted first: a body in a tight loop appends again at once
            report = self._changed.popleft()
            report.waiting = False
            latest, known = report.latest, progress.get(report.claim.job_id)
            if latest is not None and (known is None or known.fence <= report.claim.fence):
                message = self._clean(latest[2], LONGEST_MESSAGE)
                progress[report.claim.job_id] = report.progress_row(latest, message)
        lines = [self._lines.popleft() for _ in range(min(len(self._lines), LINES_AT_A_TIME))]
        return ReportBatch(list(progress.values()), [self._row(line) for line in lines])

    def _row(self, line: _Line) -> LineRow:
        text = line.text
        if text is None:
            with self._losing:
                text = f"[{line.report.lost} lines were lost here: the store did not keep up]"
                line.report.lost = 0
        return line.report.line_row(line, self._name(line.logger), text)
