"""What a step costs in Python: calls of functions from one boundary to the next, which scatter less than times."""

import sys
from collections import Counter
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.stores.recording import recorded
from windlass import Windlass
from windlass.stores.plan import Step
from windlass.stores.plans import executions
from windlass.testing import drain

EXECUTIONS = 50
ITEMS = 200
COUNTED = ("windlass.", "collections", "namedtuple_", "asyncio.timeouts")
NOT_COUNTED = (
    "windlass.stores",
    "windlass.engine",
    "windlass.loggers",
    "windlass.maintenance",
    "windlass.runtime.service",
)
"""What is done for each flush or claim, of which there are more or fewer by chance."""


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Windlass]:
    application = Windlass(sqlite_url)
    yield application
    application.close()


async def same(item: str) -> str:
    """Do nothing, on the loop."""
    return item


def calls_of(app: Windlass) -> Counter[str]:
    """Run what waits, and return how often each function was called on this thread."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(COUNTED) and not module.startswith(NOT_COUNTED):
            calls[f"{module}:{frame.f_code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        drain(app)
    finally:
        sys.setprofile(before)
    return calls


def test_step_of_a_single_value_takes_few_calls(app: Windlass):
    """P2.3: what is the same for all steps is done once for each claim, or each pipeline."""
    taken = []
    for steps in (1, 11):
        pipeline = app.pipeline(f"quick-{steps}", version="1")
        for number in range(steps):
            pipeline.step(name=f"step_{number}")(same)
        pipeline.submit_many(["x"] * EXECUTIONS)
        taken.append(calls_of(app))
    more = taken[1] - taken[0]
    assert more.total() <= 78 * 10 * EXECUTIONS, more.most_common(70)  # 71.3 as measured
    assert more["windlass.domain.lanes:Lane.text"] == 0
    assert more["collections:namedtuple.<locals>._replace"] <= 2.5 * 10 * EXECUTIONS


def test_step_of_an_item_takes_few_calls(app: Windlass):
    """P2.3: of a part, of which one claim runs many items."""
    taken = []
    for steps in (1, 3):
        pipeline = app.pipeline(f"items-{steps}", version="1")

        @pipeline.expand
        def items(count: int) -> Iterator[str]:
            return (str(number) for number in range(count))

        for number in range(steps):
            pipeline.step(name=f"step_{number}")(same)
        pipeline.submit(ITEMS)
        taken.append(calls_of(app))
    more = taken[1] - taken[0]
    assert more.total() <= 49 * 2 * ITEMS, more.most_common(70)  # 44.4 as measured
    assert more["windlass.pipelines.item_expansion:ItemExpansion.__init__"] == 0


def test_boundary_takes_as_few_statements_as_its_rules_allow(store_url: str, monkeypatch: pytest.MonkeyPatch):
    """P2.3: the claim is locked first; the last statement is sent with the commit."""
    steps: list[Step] = []
    monkeypatch.setattr(executions, "checkpoint", recorded(steps, executions.checkpoint))
    app = Windlass(store_url)
    app.migrate()
    quick = app.pipeline("quick", version="1")
    for number in range(3):
        quick.step(name=f"step_{number}")(same)
    quick.submit("x")
    drain(app)
    boundary = [("lock_pipeline_claims", False), ("advance_executions", False), ("insert_transitions", True)]
    assert [(step.name, step.final) for step in steps] == 2 * boundary, "the end of the last step ends the execution"

    items = app.pipeline("items", version="1")
    items.expand(name="expanded")(letters)
    items.step(name="step")(same)
    steps.clear()
    items.submit("abc")
    drain(app)
    written = [step for step in steps if step.name == "write_items"]
    assert written
    assert all(step.final for step in written)
    app.close()


def letters(word: str) -> Iterator[str]:
    """Give the letters of a word."""
    yield from word
