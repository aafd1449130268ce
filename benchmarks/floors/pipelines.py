"""The floor of executions: what their statements alone can do, one transaction after the other, without any body."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.cli.bench.measure import migrated
from windlass.cli.bench.pipeline_workloads import PAYLOAD, QUICK_STEPS
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic
from windlass.domain.execution import ExecutionState, LogRow, NewExecution
from windlass.domain.execution_items import ItemStatus, ItemWrite, NewItem
from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.item_paths import FIRST, child
from windlass.domain.job import NewJob
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import execution_submissions, executions, items
from windlass.stores.plans.execution_submissions import NewSubmission
from windlass.stores.plans.executions import Checkpoint

CHUNK = 500
PART = 128
TOGETHER = 100
"""Executions whose steps share a commit."""


def run_items(scratch: Scratch, count: int, steps: int) -> float:
    """Items per second: stored in chunks, written once for each step in parts of 128, read in order."""
    with migrated(scratch) as bench:
        database, execution = bench.app.database, new_job_id()
        new = [NewItem(execution, 1, child(FIRST, number), 0, 1, 0, f'[["{PAYLOAD}"],{{}}]') for number in range(count)]
        began = monotonic()
        for start in range(0, count, CHUNK):
            database.run(_insert, new[start : start + CHUNK])
        for step in range(steps):
            for start in range(0, count, PART):
                database.run(_write, [_written(item, step, steps) for item in new[start : start + PART]])
        after, read = FIRST, 0
        while page := database.read(items.done, execution, 1, after, CHUNK):
            after, read = page[-1].path, read + len(page)
        seconds = monotonic() - began
        assert read == count, f"{read} of {count} items were read"
        return count / seconds


def _written(item: NewItem, step: int, steps: int) -> ItemWrite:
    status = ItemStatus.DONE if step == steps - 1 else ItemStatus.READY
    place = (item.execution_id, item.stage, item.path, step + 1)
    return ItemWrite(*place, status.value, step + 2, 1, 0, None, None, item.type, item.value)


def _insert(dialect: Dialect, rows: Sequence[NewItem]) -> Plan[None]:
    yield Step("insert_items", dialect.bulk("new_items", rows))


def _write(dialect: Dialect, rows: Sequence[ItemWrite]) -> Plan[None]:
    yield from items.write(dialect, rows)


def run_quick(scratch: Scratch, count: int) -> float:
    """Executions per second: every step of a hundred executions in one commit."""
    with migrated(scratch) as bench:
        database = bench.app.database
        ids = new_job_ids(count)
        database.run(execution_submissions.submit, [_submission(one) for one in ids], ["default"])
        began = monotonic()
        for start in range(0, count, TOGETHER):
            for step in range(QUICK_STEPS):
                database.run(executions.advance, [_finished(one, step) for one in ids[start : start + TOGETHER]])
        return count / (monotonic() - began)


def _submission(execution: str) -> NewSubmission:
    row = NewExecution(execution, "default", "bench", "1", "hash", None, "input", 1)
    return NewSubmission(row, NewJob(execution, "default", "pipeline/bench@1#hash", 2, f'[["{PAYLOAD}"],{{}}]'))


def _finished(execution: str, step: int) -> Checkpoint:
    value = f'[["{PAYLOAD}"],{{}}]'
    position = (step + 1, step + 1, 1, step + 1, 0, 0, 0, 0, None, "")
    facts = (execution, "default", None, "OPEN", *position, 0, 0, None, 1, -1)
    log = LogRow("step", step, 1, 1, None, None, 0, value)
    state = ExecutionState(*facts, 0, value)
    return Checkpoint(execution, 1, execution, mark=f"1:{step}", state=state, has_value=True, log=log)
