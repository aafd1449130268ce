"""Pipelines at a glance, made of what is declared, what nodes have stored, and what was counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windlass.domain.clock import from_micros
from windlass.domain.pipeline_summary import HourlyCount, PipelineSummary, PipelineVersion, triage, version_key
from windlass.domain.publication import REMOTE, PublicationBacklog
from windlass.pipelines.definition import Definition
from windlass.stores.plans.external_waits import WaitCount
from windlass.stores.plans.pipeline_counts import MOST_COUNTED, CountWindow, OpenCount, StoredCounts


def summaries(
    declared: Sequence[Definition],
    stored: Sequence[Mapping[str, Any]],
    counts: StoredCounts,
    waiting: Sequence[PublicationBacklog] = (),
    outside: Sequence[WaitCount] = (),
) -> list[PipelineSummary]:
    """Return every pipeline that is declared, stored or has open executions, by name."""
    found: dict[str, dict[str, PipelineVersion]] = {}
    for version in _versions(declared, stored, counts.open):
        name, made = version
        found.setdefault(name, {})[made.version] = made
    waits = {one.pipeline: one for one in outside}
    return [_summary(name, found[name].values(), counts, waiting, waits.get(name)) for name in sorted(found)]


def _versions(
    declared: Sequence[Definition], stored: Sequence[Mapping[str, Any]], opened: Sequence[OpenCount]
) -> Iterable[tuple[str, PipelineVersion]]:
    """Yield each version once: as declared here, else as the last node had it, else by its executions alone."""
    known: dict[tuple[str, str], tuple[str, tuple[str, ...], bool]] = {}
    for one in declared:
        known[one.name, one.version] = (one.hash, tuple(step.name for step in one.steps), True)
    for row in stored:  # newest first
        known.setdefault((row["name"], row["version"]), (row["hash"], names_of(row["definition"]), False))
    for count in opened:
        known.setdefault((count.pipeline, count.version), (count.definition_hash, (), False))
    for (name, version), (digest, steps, here) in known.items():
        ours = [one for one in opened if (one.pipeline, one.version) == (name, version)]
        stranded = sum(one.number for one in ours if one.definition_hash != digest) if here else 0
        total = sum(one.number for one in ours)
        made = PipelineVersion(
            version=version, definition_hash=digest, steps=steps, declared=here, open=total, stranded=stranded
        )
        yield name, made


def names_of(definition: str) -> tuple[str, ...]:
    """Return the names of the steps of a stored definition."""
    return tuple(step["name"] for step in json.loads(definition)["steps"])


def _summary(
    name: str,
    versions: Iterable[PipelineVersion],
    counts: StoredCounts,
    waiting: Sequence[PublicationBacklog],
    waits: WaitCount | None,
) -> PipelineSummary:
    until = None if waits is None else waits.first_deadline
    ordered = tuple(sorted(versions, key=lambda one: version_key(one.version)))
    rejected, dead = _hours(name, counts.rejected), _hours(name, counts.ended["DLQ"], counts.ended["FAILED"])
    backlog = _backlog(name, waiting)
    return PipelineSummary(
        name=name,
        versions=ordered,
        open=sum(one.open for one in ordered),
        open_bounded=any(one.open >= MOST_COUNTED for one in ordered),
        stranded=sum(one.stranded for one in ordered),
        waiting=0 if waits is None else waits.number,
        waiting_until=None if until is None else from_micros(until),
        succeeded=_hours(name, counts.ended["SUCCEEDED"]),
        rejected=rejected,
        dead=dead,
        backlog=backlog,
        rules=triage(rejected, dead, backlog),
    )


def _backlog(name: str, waiting: Sequence[PublicationBacklog]) -> HourlyCount:
    ours = [one for one in waiting if one.subscriber == name and one.kind != REMOTE]
    return HourlyCount(
        last=sum(one.waiting for one in ours),
        before=sum(one.hour_ago for one in ours),
        last_bounded=any(one.bounded for one in ours),
    )


def _hours(name: str, *hours: tuple[CountWindow, CountWindow]) -> HourlyCount:
    return HourlyCount(
        last=sum(last.counts.get(name, 0) for last, _ in hours),
        before=sum(before.counts.get(name, 0) for _, before in hours),
        last_bounded=any(last.bounded for last, _ in hours),
        before_bounded=any(before.bounded for _, before in hours),
    )
