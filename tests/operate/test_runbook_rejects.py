"""docs/operate/runbook.md, section 3: poison data and a rule that has changed."""

import re

from tests.operate.runbook import Runbook
from tests.operate.shop import FACTORS, Shop
from windlass import ExecutionStatus

LIST = "windlass pipeline list"
BY_CLASS = "windlass reject groups --since 1h --by error_class"
BY_ITEM = "windlass reject groups --since 1h --by fingerprint"
BY_STEP = "windlass reject groups --since 1h --by step"
OF_STEP = "windlass reject list --pipeline PIPELINE --step STEP"
DRY = "windlass reject redrive --pipeline PIPELINE --error-class CLASS --dry-run"
SOME = 'windlass reject redrive --pipeline PIPELINE --error-class CLASS --limit 10 --note "NOTE"'
REST = 'windlass reject redrive --pipeline PIPELINE --error-class CLASS --limit 5000 --rate 20 --note "NOTE"'
ONE = 'windlass reject redrive --fingerprint FINGERPRINT --note "NOTE"'
NOTE = "inches are known now"


def measured(shop: Shop, name: str, text: str) -> None:
    (run,) = shop.ended(name, text)
    assert run.status() is ExecutionStatus.SUCCEEDED


def test_rejects_are_classified_repaired_and_redriven(runbook: Runbook, shop: Shop):
    """P10.2: from the rising count to the execution of each item; a repeat is suppressed, and counted."""
    inches = ",".join(f"{number} in" for number in range(12))
    measured(shop, "readings", f"3 cm,-1 cm,4 in,{inches}")
    (row,) = [one for one in runbook.lines(LIST) if one[0] == "readings"]
    assert row[-1] == "rejects rise: data quality or business-rule drift"
    assert runbook.lines("windlass dlq groups --kind execution --since 1h") == [], "the channels do not mix"

    groups = runbook.lines(BY_CLASS)
    assert [(group[0], group[1], group[2]) for group in groups] == [
        ("KeyError", "13", "0.9286"),
        ("RejectItem", "1", "0.0714"),
    ]
    assert runbook.lines(BY_ITEM)[0][1] == "2", "4 in came twice"
    (by_step,) = runbook.lines(BY_STEP)
    assert by_step[:2] == ["millimetres", "14"]
    names = {"PIPELINE": "readings", "STEP": "millimetres", "CLASS": "KeyError", "NOTE": NOTE}
    assert len(runbook.lines(OF_STEP, **names)) == 14

    assert "13 rejects would be re-driven" in runbook.says(DRY, **names)
    assert all(one[7] == "" for one in runbook.lines(OF_STEP, **names)), "a dry run touches nothing"
    FACTORS["in"] = 25
    some, rest = (runbook.says(command, "--yes", **names) for command in (SOME, REST))
    redriven = [int(found) for found in re.findall(r"^re-driven (\d+) reject", some + rest, re.MULTILINE)]
    assert (redriven[0] in (9, 10), sum(redriven)) == (True, 12)
    assert (some + rest).count("1 reject had been re-driven before, by another reject of the same item") == 1
    listed = runbook.lines(OF_STEP, **names)
    assert len([one for one in listed if one[7]]) == 13
    with shop.app.worker():
        results = {shop.app.executions.handle(one[7]).result(timeout=90) for one in listed if one[7]}
    assert results == {(number * 25) for number in range(12)}


def test_a_cause_that_is_not_fixed_rejects_the_same_items_again(runbook: Runbook, shop: Shop):
    """P10.2: repair first; one item can be re-driven by its fingerprint."""
    measured(shop, "readings", "3 cm,7 mile")
    (group,) = runbook.lines(BY_ITEM)
    printed = runbook.says(ONE, "--yes", FINGERPRINT=group[0], NOTE="too early")
    (execution,) = [line.split()[1] for line in printed.splitlines() if line.startswith("execution")]
    with shop.app.worker():
        assert shop.app.executions.handle(execution).join(timeout=90) is ExecutionStatus.SUCCEEDED
    assert runbook.lines(BY_ITEM)[0][:2] == [group[0], "2"]


def test_items_that_were_not_kept_cannot_be_redriven(runbook: Runbook, shop: Shop):
    """P5.4, P10.2: it is the application's affair then, and the error names the option."""
    measured(shop, "meters", "7 mile")
    printed = runbook.run(DRY, PIPELINE="meters", CLASS="KeyError")
    assert "include_payload" in printed.output
