"""Pipelines at a glance: what is open, what ended in the last two hours, and the rule to triage by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

_DIGITS = re.compile(r"(\d+)")

STEADY: Final = 1.1
"""A count that grows by no more than this factor is steady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyCount:
    """How many there were in the last hour, and in the hour before it. Counting stops at a limit."""

    last: int
    before: int
    last_bounded: bool = False
    """Whether counting stopped before all of the last hour were seen."""
    before_bounded: bool = False
    """Whether counting stopped before all of the hour before were seen."""

    @property
    def rises(self) -> bool:
        """Whether there were clearly more in the last hour; not known if counting stopped in both."""
        return not (self.last_bounded and self.before_bounded) and self.last > self.before * STEADY

    @property
    def falls(self) -> bool:
        """Whether there were clearly fewer in the last hour."""
        return not (self.last_bounded and self.before_bounded) and self.before > self.last * STEADY


class TriageRule(StrEnum):
    """What a rising count of a failure channel means; `words` is for people."""

    REJECTS_RISE = "rejects_rise"
    BACKLOG_RISES = "backlog_rises"
    DEAD_LETTERS_RISE = "dead_letters_rise"
    NOTHING_RISES = "nothing_rises"

    @property
    def words(self) -> str:
        """The rule in words."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    TriageRule.REJECTS_RISE: "rejects rise: data quality or business-rule drift",
    TriageRule.DEAD_LETTERS_RISE: "DLQ rises: dependency or systemic failure",
    TriageRule.BACKLOG_RISES: "publication backlog rises: throughput or admission pressure",
    TriageRule.NOTHING_RISES: "nothing rises",
}


NONE_COUNTED: Final = HourlyCount(last=0, before=0)


def triage(rejected: HourlyCount, dead: HourlyCount, backlog: HourlyCount = NONE_COUNTED) -> tuple[TriageRule, ...]:
    """Return the rules that apply, the widest failure first: whole executions before single items."""
    rising = [TriageRule.DEAD_LETTERS_RISE] if dead.rises else []
    rising += [TriageRule.REJECTS_RISE] if rejected.rises else []
    rising += [TriageRule.BACKLOG_RISES] if backlog.rises else []
    return tuple(rising) or (TriageRule.NOTHING_RISES,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineVersion:
    """One version of a pipeline."""

    version: str
    definition_hash: str
    """Hash declared in this application, else that of the last node that started with this version."""
    steps: tuple[str, ...]
    """Names of its steps; empty if neither this application nor a node has declared it."""
    declared: bool
    """Whether this application declares it."""
    open: int
    """Number of its executions that have not ended, counted up to 10,000."""
    stranded: int
    """Open executions that were begun with other steps than this application declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSummary:
    """A pipeline with its executions of all tenants, from `app.executions.overview()`."""

    name: str
    versions: tuple[PipelineVersion, ...]
    """In their order; the last one is the newest."""
    open: int
    """Number of executions that have not ended; of each version at most 10,000 are counted."""
    open_bounded: bool
    """Whether counting stopped before all were seen."""
    stranded: int
    """Number of open executions that were begun with other steps than this application declares."""
    waiting: int
    """Number of steps and items that wait for answers from outside, counted up to 10,000."""
    waiting_until: datetime | None
    """A deadline of those that were counted, the first one of them; None: nothing waits."""
    succeeded: HourlyCount
    rejected: HourlyCount
    """Items that were given up while their executions went on."""
    dead: HourlyCount
    """Executions that failed for good: DLQ or, of pipelines without dead letters, FAILED."""
    backlog: HourlyCount = NONE_COUNTED
    """Items of publications that wait to become executions of it: now, and an hour ago."""
    rules: tuple[TriageRule, ...]
    """What the rising counts mean."""

    @property
    def triage(self) -> str:
        """The rules in words."""
        return "; ".join(rule.words for rule in self.rules)


def version_key(version: str) -> list[tuple[int, int, str]]:
    """Return what sorts versions as people do: 2 before 10, 1.9 before 1.10."""
    parts = [part for part in _DIGITS.split(version) if part]
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
