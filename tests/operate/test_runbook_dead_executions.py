"""docs/operate/runbook.md, section 4: a dependency that fails, and data that no retry helps."""

import re
from collections import Counter

import pytest

from tests.operate.runbook import PAGE, Runbook
from tests.operate.shop import Bank, Shop
from tests.support.facts import rows
from windlass.domain.dead_letter import REASONS

LIST = "windlass pipeline list"
GROUPS = "windlass dlq groups --kind execution --since 1h"
GROUP = "windlass dlq groups --kind execution --fingerprint FINGERPRINT"
LETTERS = "windlass dlq list --kind execution --since 1h"
SHOW = "windlass dlq show ID"
DEAD = "windlass execution list --status dlq --tenant TENANT"
FAILED = "windlass execution list --status failed --tenant TENANT"
PLAN = "windlass dlq redrive --kind execution --fingerprint FINGERPRINT --limit 10 --dry-run"
PLAN_ONE = "windlass execution redrive ID --dry-run"
FEW = 'windlass dlq redrive --kind execution --fingerprint FINGERPRINT --limit 10 --wait --note "NOTE"'
REST = 'windlass dlq redrive --kind execution --fingerprint FINGERPRINT --limit 5000 --rate 20 --wait --note "NOTE"'
NOTE = "the bank is back"


def test_a_failed_dependency_is_found_and_its_dead_executions_are_redriven(runbook: Runbook, shop: Shop, bank: Bank):
    """P10.2, P6.3: classify, look, plan, a few, the rest, and look again."""
    runs = shop.ended("payments", *range(25), -1)
    (row,) = [one for one in runbook.lines(LIST) if one[0] == "payments"]
    assert row[-1] == "DLQ rises: dependency or systemic failure"
    groups = runbook.lines(GROUPS)
    assert [(group[1], group[2]) for group in groups] == [("25", "payments"), ("1", "payments")]
    (fingerprint, poison), total = (groups[0][0], groups[1][0]), len(runbook.lines(LETTERS))
    assert total == 26
    dead = {str(run.id) for run in runs}
    assert {one[0] for one in runbook.lines(DEAD, TENANT="default")} == dead
    assert runbook.lines("windlass reject groups --since 1h --by step") == [], "the channels do not mix"

    shown = runbook.says(SHOW, ID=runs[0].id)
    for expected in ("reason: retry_exhausted", REASONS["retry_exhausted"].first_action, "step: 1 (charge)"):
        assert expected in shown
    assert REASONS["non_retryable"].first_action in runbook.says(SHOW, ID=runs[-1].id)

    log = runbook.says("windlass execution show ID", ID=runs[0].id)
    assert re.search(r"^\d+\t.*\tended\tcharge\t2\t.*ConnectionError: the bank does not answer", log, re.MULTILINE)

    planned = runbook.lines(PLAN, FINGERPRINT=fingerprint)
    steps = [(line[1], line[2].removeprefix(line[0]), line[3]) for line in planned if len(line) > 1]
    assert Counter(steps) == {
        ("step 1 charge", ":1", "2 tries so far"): 10,
        ("step 2 receipt", ":2", "0 tries so far"): 10,
    }
    one = runbook.run(PLAN_ONE, ID=runs[0].id)
    assert "1 of 2 steps would be called again" in one.output

    bank.open()
    with shop.app.worker():
        few = runbook.says(FEW, "--yes", FINGERPRINT=fingerprint, NOTE=NOTE)
        assert few.splitlines()[-1] == "re-driven 10 dead letters: 10 succeeded, 0 failed again"
        rest = runbook.says(REST, "--yes", FINGERPRINT=fingerprint, NOTE=NOTE)
        assert rest.splitlines()[-1] == "re-driven 15 dead letters: 15 succeeded, 0 failed again"
    assert set(bank.keys) == {f"{run.id}:1" for run in runs[:-1]}, "by the keys of the plan"
    assert "no dead letters fit" in runbook.says(GROUP, FINGERPRINT=fingerprint)
    assert [line[0] for line in runbook.lines(GROUP, FINGERPRINT=poison)] == [poison]


def test_a_redrive_stops_while_the_cause_is_not_fixed(runbook: Runbook, shop: Shop, bank: Bank):
    """P10.2: more than half of twenty fail again: it stops, exits with 1 and says so; nothing is lost by it."""
    shop.ended("payments", *range(45))
    (group,) = runbook.lines(GROUPS)
    with shop.app.worker():
        stopped = runbook.run(REST, "--yes", FINGERPRINT=group[0], NOTE="too early")
    assert stopped.exit_code == 1
    assert re.search(r"stopped: (\d+) of the \1 that have ended since failed again, more than 50%", stopped.output)
    assert runbook.lines(GROUP, FINGERPRINT=group[0])[0][0] == group[0]
    bank.open()
    with shop.app.worker():
        assert runbook.run(REST, "--yes", FINGERPRINT=group[0], NOTE=NOTE).exit_code == 0
    assert len(set(bank.keys)) == 45


def test_failures_of_pipelines_without_dead_letters_are_found_by_their_status(runbook: Runbook, shop: Shop, bank: Bank):
    """P10.2: FAILED against DLQ."""
    (run,) = shop.ended("receipts", 5)
    assert runbook.lines(LETTERS) == runbook.lines(DEAD, TENANT="default") == []
    assert [one[0] for one in runbook.lines(FAILED, TENANT="default")] == [str(run.id)]
    (row,) = [one for one in runbook.lines(LIST) if one[0] == "receipts"]
    assert row[-1] == "DLQ rises: dependency or systemic failure"


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_has_its_first_action(runbook: Runbook, shop: Shop, reason: str):
    """P6.1, P10.2: on the page and by `dlq show`, the same."""
    (run,) = shop.ended("payments", -1)
    rows(runbook.url, f"UPDATE windlass_dead_letter SET reason = '{reason}' WHERE job_id = '{run.id}'")
    assert f"first action: {REASONS[reason].first_action}\n" in runbook.says(SHOW, ID=run.id)


def test_the_page_has_the_table_of_reasons():
    """P6.1: that of the code."""
    found = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [(name, reason.meaning, reason.first_action) for name, reason in REASONS.items()]
