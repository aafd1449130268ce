"""What must be true of the jobs of flows in every run."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.facts import Facts

SUCCESS, FAILURE = 1, 3
"""How a job follows its parent: `windlass.domain.dependencies.Follows`."""
ENDS = {"SUCCEEDED", "FAILED", "CANCELED"}


def followers_run_after_the_end_they_follow(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """No body of a follower is entered before its parent, or every member of its group, ended as it must."""
    ends = _ends(facts)
    for row in facts.tables.flow:
        ran = facts.runs.get(row.job)
        if row.parent is not None and ran and ends.get(row.parent) not in (*_released_by(row.follows), None):
            yield row.job, f"ran, though what it follows ({row.parent}) has {ends[row.parent]}"


def followers_end_as_their_parents_say(facts: Facts) -> Iterator[tuple[str | None, str]]:
    """What follows a success runs if there was one, and is canceled if not; of a failure the opposite."""
    ends = _ends(facts)
    for row in facts.tables.flow:
        done = facts.done.get(row.job)
        if row.parent is None or done is None:
            continue
        released = ends.get(row.parent) in _released_by(row.follows)
        if released == (done.status == "CANCELED"):
            yield row.job, f"is {done.status} ({done.reason}), and what it follows has {ends.get(row.parent)}"


def _released_by(follows: int | None) -> tuple[str, ...]:
    return ("SUCCEEDED",) if follows == SUCCESS else ("FAILED",)


def _ends(facts: Facts) -> dict[str, str]:
    """How jobs and groups have ended, as far as they have."""
    ends = {done.id: done.status for done in facts.tables.done}
    members: dict[str, list[str | None]] = defaultdict(list)
    for row in facts.tables.flow:
        if row.group is not None:
            members[row.group].append(ends.get(row.job))
    for group, found in members.items():
        if None not in found:
            ends[group] = "SUCCEEDED" if set(found) == {"SUCCEEDED"} else "FAILED"
    return ends
