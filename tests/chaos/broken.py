"""Builds that are broken on purpose, to see that oracle and model find them. Never part of the product: a test
program asks for one by name when it starts, and its own process is changed.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from windlass.domain.ended import Effects
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Completer
from windlass.pipelines import follow_ups
from windlass.pipelines.final_items import FinalItems
from windlass.stores import queries
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import handoffs

T = TypeVar("T")

GAP = 0.15
"""Seconds between the two halves of a completion that should be one: kills hit it now and then."""
PUBLISHED_AFTER = 2.0
"""Seconds between a success and its publication, which should be one commit: a killed worker is often between both."""
PUBLISHED_LATER = "published later"

_DELETED = re.compile(r"DELETE FROM windlass_hot h USING input i WHERE (.+)\n\s+RETURNING (.+)")
_COUNTED = """CAST((SELECT count(*) FROM windlass_hot h WHERE h.holds LIKE '%"' || g.name || '"%') + coalesce((
    SELECT sum(f.places) FROM windlass_freed f WHERE f.gate = g.name), 0) AS bigint)"""

Change = Callable[[str, str], str]
"""Name and text of a statement → its text in the broken build."""


def without_fence(name: str, text: str) -> str:
    """Completions are guarded by the id alone: the first writer wins, even one that has lost the job."""
    if name in {"held", "finish_done", "insert_attempts", "finish", "finish_succeeded"}:
        text = text.replace(" AND h.fence = t.fence", "").replace(" AND h.fence = i.fence", "")
        text = text.replace(
            "error_class, error, traceback FROM gone", "error_class, error, traceback FROM gone ON CONFLICT DO NOTHING"
        )
    return text


def ignored_heartbeats(name: str, text: str) -> str:
    """All other nodes are marked lost at every pass, whatever their heartbeats."""
    return text.replace("lease_until < {now} AND", "id <> :node AND", 1) if name == "mark_lost" else text


def kept_hot(name: str, text: str) -> str:
    """The completing statement leaves the live row where it is."""
    if name in {"finish", "finish_succeeded"}:
        return _DELETED.sub(r"SELECT \2 FROM windlass_hot h JOIN input i ON \1", text)
    return text


def counted_permits(name: str, text: str) -> str:
    """How many are inside is counted over the rows of running jobs, in the statement that locks the gate.

    On SQLite, which has one writer at a time, that is only slow.
    """
    return text.replace("g.in_use", _COUNTED) if name == "lock_gates" else text


STATEMENTS: dict[str, Change] = {
    "no fence": without_fence,
    "ignored heartbeats": ignored_heartbeats,
    "split commit": kept_hot,
    "counted permits": counted_permits,
}
"""What each broken build does to named statements."""
NAMES = (*STATEMENTS, PUBLISHED_LATER)


def changed(dialect: str, name: str) -> dict[str, queries.Query]:
    """The statements of a dialect in a broken build; a change that changes nothing is a mistake here."""
    sound = queries.load(dialect)
    change = STATEMENTS[name]
    found = {key: query._replace(sql=change(key, query.sql)) for key, query in sound.items()}
    if found == sound and not (name == "split commit" and dialect == "sqlite"):
        raise ValueError(f"{name!r} has nothing to break on {dialect}: the statements have changed, change it too")
    return found


def install(name: str) -> None:
    """Break this process; an empty name leaves it as it is."""
    if not name:
        return
    if name == PUBLISHED_LATER:
        _publish_later()
        return
    if name not in STATEMENTS:
        raise ValueError(f"no broken build is called {name!r}; there are {', '.join(NAMES)}")
    for dialect in ("sqlite", "postgres"):
        broken = changed(dialect, name)
        queries.load(dialect).update(broken)  # cached: every session shares this very dictionary
    if name == "split commit":
        _split_commits()


def without(plan: Plan[T], name: str) -> Plan[T]:
    """The plan, with one of its statements left out."""
    step = next(plan)
    while True:
        answer = 0 if step.name == name else (yield step)
        try:
            step = plan.send(answer)
        except StopIteration as stop:
            left: T = stop.value
            return left


def _split_commits() -> None:
    """Outcome and history in one transaction, the live row goes in another one."""
    finish, write = Dialect.finish, Completer._write

    def without_deleting(self: Dialect, transitions: Any, *, alone: bool) -> Plan[list[bool]]:
        return without(finish(self, transitions, alone=alone), "finish_hot")

    async def in_two(self: Completer, batch: list[Attempt], *, unsure: bool) -> None:
        ended = [attempt.claim.job_id for attempt in batch if attempt.verdict.terminal]
        await write(self, batch, unsure=unsure)
        await asyncio.sleep(GAP)
        await self._database.arun(_delete_hot, ended)

    Dialect.finish = without_deleting  # type: ignore[method-assign]
    Completer._write = in_two  # type: ignore[method-assign]


def _publish_later() -> None:
    """Items of an execution are handed over in a transaction of their own, a while after that of its success."""
    prepared = FinalItems._prepared
    databases: list[Any] = []

    async def remembering(self: FinalItems, given: Any) -> Any:
        databases[:] = [self._claimed.runtime.database]
        return await prepared(self, given)

    def hand_over(outgoing: Any) -> None:
        threading.Event().wait(PUBLISHED_AFTER)
        databases[0].run(handoffs.publish, outgoing)

    def publish(dialect: Dialect, ended: Any, **options: Any) -> Plan[Effects]:
        del dialect, options
        yield from ()
        outgoing = [one for job in ended for one in job.cargo.outgoing]
        return Effects(calls=(threading.Thread(target=partial(hand_over, outgoing), daemon=True).start,))

    FinalItems._prepared = remembering  # type: ignore[method-assign]
    follow_ups._publish = publish


def _delete_hot(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    yield Step("finish_hot", {"ids": dialect.ids(ids)})
