"""What running jobs say of themselves, written a few times a second: progress and the log lines that are kept.

Bodies never wait: they put down their latest word, or a line, and go on. A service writes for all attempts of the node
together; what an attempt has said last is written before its outcome is. Nothing here touches the job's own rows.
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
from windlass.stores.plans.progress_reports import Batch, LineRow, ProgressRow

logger = loggers.logger("windlass.reports")

INTERVAL = 0.25
"""Seconds that words come together before they are written; a job that ends sooner brings its last ones itself."""
LINES_AT_A_TIME = 1000
BUFFER = 10_000
"""Lines that may wait to be written; what is logged beyond that is lost, and said to be."""
LONGEST_LINE = 2000
LONGEST_SEARCHED = 8000
"""Characters of a text that are searched for secrets, far more than are kept: what is beyond is not even looked at."""
LONGEST_MESSAGE = 500
LONGEST_NAME = 200
ROOM_FOR_TRACEBACK = 200
HIGHEST_LEVEL = 2**15 - 1


class _Line(NamedTuple):
    """A line on its way. Without text it is the place where lines were lost."""

    report: AttemptReport
    moment: float
    level: int
    logger: str
    text: str | None


class AttemptReport:
    """What one attempt has said and is not written. Made when it speaks up for the first time."""

    def __init__(self, node: Reports, claim: Claim, received: float) -> None:
        self.claim = claim
        self.waiting = False
        """Whether it is among those whose progress is to be written."""
        self.latest: tuple[float, float | None, str, float] | None = None
        self.lost = 0
        """Lines that found no room, since the last time this was written down."""
        self._node = node
        self._received = received
        self._logged = count(1)
        self._numbers = count(1)

    def tell(self, done: float, total: float | None, message: str) -> None:
        """How far it is now."""
        self.latest = (done, total, message, monotonic())
        if not self.waiting:  # after `latest` is set: whoever takes it, looks in the other order
            self.waiting = True
            self._node.changed(self)

    def line(self, record: logging.LogRecord) -> None:
        """A line to keep, unless it has had its share."""
        node, logged = self._node, next(self._logged)
        if logged <= node.most_lines:
            node.add_line(_Line(self, monotonic(), record.levelno, record.name, node.text_of(record)))
        elif logged == node.most_lines + 1:
            text = f"[no more lines of this attempt are kept: jobs.max_log_lines is {node.most_lines}]"
            node.add_line(_Line(self, monotonic(), logging.WARNING, JOB_LOGGER, text))

    def progress_row(self, said: tuple[float, float | None, str, float], message: str) -> ProgressRow:
        """Its progress as it is stored."""
        done, total, _, moment = said
        return ProgressRow(self.claim.job_id, self.claim.fence, done, total, message, self._store_time(moment))

    def line_row(self, line: _Line, name: str, text: str) -> LineRow:
        """A line of it as it is stored. Numbered here, by one thread: who has read up to a number misses nothing."""
        claim, at, level = self.claim, self._store_time(line.moment), min(line.level, HIGHEST_LEVEL)
        return LineRow(claim.job_id, claim.fence, next(self._numbers), claim.attempts + 1, at, level, name, text)

    def _store_time(self, moment: float) -> int:
        return self.claim.picked_at + int((moment - self._received) * 1_000_000)


class Reports(Service):
    """Gathers what the attempts of a node say, and writes it."""

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
        self._unwritten: Batch | None = None
        self._writing = asyncio.Lock()
        self._losing = threading.RLock()
        self._lost = self._said_lost = False
        self._resting = True

    # ------------------------------------------------------------------ bodies speak, on any thread

    def keeps(self, name: str) -> bool:
        """Whether lines of a logger are kept."""
        return self._keep == "all" or (self._keep == "job" and name == JOB_LOGGER)

    def open(self, claim: Claim, received: float) -> AttemptReport:
        """For an attempt that has something to say."""
        return AttemptReport(self, claim, received)

    def changed(self, report: AttemptReport) -> None:
        """An attempt's progress is to be written."""
        self._changed.append(report)
        self._rouse()

    def add_line(self, line: _Line) -> None:
        """Take a line, or note that it was lost."""
        if len(self._lines) < BUFFER:
            self._lines.append(line)
        else:
            with self._losing:
                if not line.report.lost:
                    self._lines.append(line._replace(level=logging.WARNING, logger=JOB_LOGGER, text=None))
                line.report.lost += 1
                self._lost = True
        self._rouse()

    def text_of(self, record: logging.LogRecord) -> str:
        """A record's message, and the end of its traceback, without secrets. Now: its arguments may change."""
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

    def _rouse(self) -> None:
        if self._resting:
            self.wake()

    # ------------------------------------------------------------------ the node writes, on its loop

    def before(self, batch: Sequence[Attempt]) -> Awaitable[None] | None:
        """What to await before the outcomes of attempts are written: once they are, late words are refused."""
        if not (self._waiting or self._writing.locked()):
            return None
        spoke = any(attempt.context is not None and attempt.context.reported for attempt in batch)
        return self._last_words() if spoke else None

    async def _last_words(self) -> None:
        try:
            await self.flush()
        except StoreUnavailableError:
            raise  # then the outcomes cannot be written either, and this is tried again with them
        except Exception:  # noqa: BLE001 - outcomes matter more; the next tick meets the same error, and logs it
            return

    async def tick(self) -> float | None:
        """Write what came together, and rest as soon as nobody speaks."""
        if self._resting:
            self._resting = False
            return INTERVAL
        if self._lost and not self._said_lost:
            self._said_lost = True
            logger.warning("log lines of jobs are being dropped: %d wait for the store, which is the most", BUFFER)
        await self.flush()
        self._lost = self._said_lost = False
        self._resting = True
        if not self._waiting:  # asked after `_resting` is set: whoever speaks from now on, wakes
            return None
        self._resting = False
        return INTERVAL

    @property
    def _waiting(self) -> bool:
        return bool(self._changed or self._lines or self._unwritten)

    async def flush(self) -> None:
        """Write everything that was said until now."""
        for _ in range(2 + len(self._lines) // LINES_AT_A_TIME):
            async with self._writing:
                if not self._waiting:
                    return
                await self._write()

    async def close(self, patience: float) -> None:
        """End, and write what is left, for at most `patience` seconds."""
        await self.stop()
        try:
            await asyncio.wait_for(self.flush(), patience)
        except (TimeoutError, StoreUnavailableError):
            logger.error("the store does not answer: some log lines and progress of jobs were not written")
        except StoreStatementError as error:
            logger.error("some log lines and progress of jobs were not written: %s", self._sanitizer.sanitize(error))

    async def _write(self) -> None:
        """One batch; it is kept until it is written, so that nothing newer overtakes it."""
        batch = self._unwritten = self._unwritten or self._take()
        try:
            await self._database.arun(progress_reports.save, batch)
        except StoreDataError as error:
            logger.error(
                "the database refuses progress of %d jobs and %d log lines, which are lost: %s",
                len(batch.progress),
                len(batch.lines),
                self._sanitizer.sanitize(error),
            )
        self._unwritten = None

    def _take(self) -> Batch:
        progress: dict[str, ProgressRow] = {}
        for _ in range(len(self._changed)):  # counted first: a body in a tight loop is back at once
            report = self._changed.popleft()
            report.waiting = False
            said, known = report.latest, progress.get(report.claim.job_id)
            if said is not None and (known is None or known.fence <= report.claim.fence):
                message = self._clean(said[2], LONGEST_MESSAGE)
                progress[report.claim.job_id] = report.progress_row(said, message)
        lines = [self._lines.popleft() for _ in range(min(len(self._lines), LINES_AT_A_TIME))]
        return Batch(list(progress.values()), [self._row(line) for line in lines])

    def _row(self, line: _Line) -> LineRow:
        text = line.text
        if text is None:
            with self._losing:
                text = f"[{line.report.lost} lines were lost here: the store did not keep up]"
                line.report.lost = 0
        return line.report.line_row(line, self._name(line.logger), text)
