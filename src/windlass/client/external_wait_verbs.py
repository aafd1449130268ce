"""The verbs of `app.executions` on steps that wait for the outside: list what waits, and answer it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Any, Final

from windlass import loggers
from windlass.client.answer_verbs import MOST_ANSWERS, AddressedAnswer, with_position
from windlass.client.execution_reports import DEFAULT_TENANT, ExecutionReports
from windlass.client.filters import Page, checked_limit
from windlass.domain.external_wait import Completion, ExternalWait, WaitKey
from windlass.domain.identity import FIRST_ID, parse_job_id
from windlass.domain.interaction_tokens import TokenContent
from windlass.domain.keys import check_key
from windlass.errors import InvalidOptionError
from windlass.execution_errors import InvalidTokenError
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import external_waits
from windlass.stores.plans.external_waits import OpenWait
from windlass.submission.error_text import short

logger = loggers.logger("windlass.pipelines")

Spot = tuple[int, WaitKey]
MOST_MICROS: Final = 2**63 - 1
_CURSOR: Final = re.compile(
    r"(?P<pipeline>\S+) (?P<deadline>[0-9]{1,19}) (?P<id>[0-9a-f-]{36}) "
    r"(?P<step>[0-9]{1,4}) (?P<path>.*) (?P<round>[0-9]{1,4})"
)
START: Final[Spot] = (0, WaitKey(FIRST_ID, 0, "", 0))


class ExternalWaits(ExecutionReports):
    """Verbs on steps that wait for answers from outside."""

    def pending(
        self,
        pipeline: str | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[ExternalWait]:
        """Return what waits for an answer, by pipeline, the first deadline first; each with a token that answers it.

        ```python
        for wait in app.executions.pending(pipeline="orders"):
            print(wait.request, wait.deadline)
        ```
        """
        return drive(self._pending(pipeline, tenant, cursor, limit))

    async def apending(
        self,
        pipeline: str | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[ExternalWait]:
        """Async twin of `pending`."""
        return await adrive(self._pending(pipeline, tenant, cursor, limit))

    def complete(
        self,
        token: str | None = None,
        answer: Any = None,
        *,
        interaction_id: str | None = None,
        correlation_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Completion:
        """Answer a waiting step, which goes on at once; give its token, its interaction id or its correlation id.

        ```python
        app.executions.complete(token, {"approved": True})
        ```
        The answer must fit the type that the step waits for. The first one holds: a later one returns it, with
        `duplicate=True`. After the deadline it is an `AwaitTimeoutError`, with a wrong token an `InvalidTokenError`.
        `tenant` is for ids; a token needs none. A correlation id that several waits share is an error.
        """
        return drive(self._complete(token, answer, interaction_id, correlation_id, tenant))

    async def acomplete(
        self,
        token: str | None = None,
        answer: Any = None,
        *,
        interaction_id: str | None = None,
        correlation_id: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Completion:
        """Async twin of `complete`."""
        return await adrive(self._complete(token, answer, interaction_id, correlation_id, tenant))

    def complete_many(self, answers: Iterable[tuple[str, Any]]) -> list[Completion]:
        """Answer many waiting steps, given as tokens and answers, in one transaction: all or none, up to 5,000.

        ```python
        app.executions.complete_many([(wait.token, True) for wait in app.executions.pending(limit=500)])
        ```
        """
        return drive(self._complete_many(answers))

    async def acomplete_many(self, answers: Iterable[tuple[str, Any]]) -> list[Completion]:
        """Async twin of `complete_many`."""
        return await adrive(self._complete_many(answers))

    # ------------------------------------------------------------------ verbs

    def _pending(self, pipeline: str | None, tenant: str, cursor: str | None, limit: int) -> Verb[Page[ExternalWait]]:
        access, most = self._verbs.jobs.access, checked_limit(limit)
        check_key(tenant, "tenant")
        name = None if pipeline is None else check_key(pipeline, "pipeline")
        spot = START
        if cursor is not None:
            name, spot = _parse_cursor(cursor, name)
        yield from self._verbs.jobs.authorization.check("pending")
        name = name or (yield from access.read(external_waits.next_pipeline, ""))
        found: list[OpenWait] = []
        while name is not None and len(found) < most:
            found += yield from access.read(external_waits.pending, tenant, name, spot, most - len(found))
            if len(found) < most:
                following = yield from access.read(external_waits.next_pipeline, name)
                name, spot = following if pipeline is None else None, START
        waits = yield from self._permitted((yield from self._shown(found)))
        return Page(waits, _cursor_of(found) if len(found) == most else None)

    def _shown(self, found: list[OpenWait]) -> Verb[list[ExternalWait]]:
        yield from self._declared.tokens.ready(self._verbs.jobs.access.database)
        return [wait for one in found if (wait := self._readable(one)) is not None]

    def _permitted(self, waits: list[ExternalWait]) -> Verb[list[ExternalWait]]:
        """Leave out what the principal may not read, and the tokens of what it may not answer."""
        authorization = self._verbs.jobs.authorization
        if not authorization.is_asked:
            return waits
        seen = yield from authorization.permitted("get", [wait.execution_id for wait in waits])
        answered = yield from authorization.permitted("complete", list(seen))
        return [
            wait if wait.execution_id in answered else dataclasses.replace(wait, token="")
            for wait in waits
            if wait.execution_id in seen
        ]

    def _readable(self, row: OpenWait) -> ExternalWait | None:
        """Return a wait; None if its row is damaged, which hides no other."""
        try:
            token = self._declared.tokens.sign(TokenContent(row.key, row.deadline))
            return self._verbs.reader.external_wait(row, token)
        except Exception as error:  # noqa: BLE001 - whatever is stored there
            logger.warning(
                "an external wait is left out of the list because its row is damaged: execution_id=%s step=%s path=%s "
                "round=%s (%s: %s)",
                *row.key,
                type(error).__name__,
                error,
            )
            return None

    def _complete(
        self, token: object, answer: Any, interaction_id: object, correlation_id: str | None, tenant: str
    ) -> Verb[Completion]:
        given = [one for one in (token, interaction_id, correlation_id) if one is not None]
        if len(given) != 1:
            raise InvalidOptionError(
                f"complete() needs a token, interaction_id=... or correlation_id=..., one of them, got {len(given)}"
            )
        check_key(tenant, "tenant")
        verbs = self._verbs.answers
        if token is not None:
            addressed = yield from verbs.of_token(token, answer)
        elif correlation_id is not None:
            correlation = check_key(correlation_id, "correlation_id")
            addressed = yield from verbs.of_correlation(correlation, answer, tenant)
        else:
            addressed = verbs.of_interaction(interaction_id, answer, tenant)
        (completion,) = yield from verbs.complete([addressed])
        return completion

    def _complete_many(self, answers: Iterable[object]) -> Verb[list[Completion]]:
        given = list(answers)
        if len(given) > MOST_ANSWERS:
            raise InvalidOptionError(
                f"complete_many() takes up to {MOST_ANSWERS:,} answers, which are one transaction, got {len(given):,}; "
                "call it several times"
            )
        addressed: list[AddressedAnswer] = []
        for position, pair in enumerate(given):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidOptionError(
                    f"complete_many() takes pairs of a token and an answer, and got at place {position} "
                    f"{type(pair).__name__}; none of these answers is stored"
                )
            try:
                addressed.append((yield from self._verbs.answers.of_token(*pair)))
            except InvalidTokenError as error:
                raise with_position(error, position, len(given)) from None
        return (yield from self._verbs.answers.complete(addressed)) if addressed else []


def _cursor_of(found: list[OpenWait]) -> str | None:
    """Return where the next page begins: behind the last row whose position can be read."""
    cursors = (" ".join(map(str, (one.pipeline, one.deadline, *one.key))) for one in reversed(found))
    return next((cursor for cursor in cursors if _CURSOR.fullmatch(cursor)), None)


def _parse_cursor(cursor: object, pipeline: str | None) -> tuple[str, Spot]:
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None or pipeline not in (None, found["pipeline"]) or int(found["deadline"]) > MOST_MICROS:
        raise InvalidOptionError(f"a cursor comes from the page before (page.next_cursor), got {short(cursor)}")
    key = WaitKey(parse_job_id(found["id"]), int(found["step"]), found["path"], int(found["round"]))
    return found["pipeline"], (int(found["deadline"]), key)
