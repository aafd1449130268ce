"""What is reported to a node's poller wakes it."""

from collections.abc import Callable

import pytest

from windlass.engine.known_work import KnownWork
from windlass.stores.plans.queues import Heads

HELD = Heads(5, [], frozenset({"mail"}), held=True)
NOT_HELD = HELD._replace(held=False)
Report = Callable[[KnownWork], None]


def ended_during_look(answer: Heads) -> Report:
    def look(work: KnownWork) -> None:
        work.outlook = work.outlook.begin_look(1.0)
        work.jobs_ended()
        work.after_look(answer)

    return look


@pytest.mark.parametrize(
    ("known", "report", "rings"),
    [
        (NOT_HELD, lambda work: work.new_work([("mail", 2)]), 1),
        (NOT_HELD, lambda work: work.changed(), 1),
        (NOT_HELD, lambda work: work.expect([]), 1),
        (NOT_HELD, lambda work: work.circuits_changed([]), 1),
        (NOT_HELD, lambda work: work.permits_freed([]), 1),
        (NOT_HELD, lambda work: work.slot_freed(), 1),
        (NOT_HELD, lambda work: work.jobs_ended(), 0),
        (HELD, lambda work: work.jobs_ended(), 1),
        (HELD, lambda work: work.after_look(NOT_HELD), 0),
        (NOT_HELD, ended_during_look(NOT_HELD), 0),
        (NOT_HELD, ended_during_look(HELD), 1),
    ],
)
def test_a_report_wakes_the_poller_where_it_can_change_what_it_does(
    monkeypatch: pytest.MonkeyPatch, known: Heads, report: Report, rings: int
):
    """J3.6: jobs that end elsewhere, which is all the time, only if jobs wait for what they may release."""
    work, rung = KnownWork(1.0), list[None]()
    work.after_look(known)
    monkeypatch.setattr(work.bell, "ring", lambda: rung.append(None))
    report(work)
    assert len(rung) == rings
