"""Crash matrix of steps that wait outside: workers die at a park, callers at an answer; connections break at both."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.crash.programs.application import make_app
from tests.crash.programs.pipelines import BUFFER, Order
from tests.support.crashing import KILLED
from tests.support.facts import one, rows
from tests.support.pipeline_crashing import DeadWorker, PipelineStage
from tests.support.pipeline_invariants import check_executions
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass import ExecutionStatus, ExternalWait, NodeSettings, Settings, StoreUnavailableError, Windlass

LINES = 3 * BUFFER + 5
"""Four parts."""
FEW = 5
"""Run by the claim of the execution itself."""
QUICK = Settings(node=NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3, recovery_interval=0.2))
CUTS = pytest.mark.parametrize("arrives", [True, False], ids=["committed", "never arrived"])
RUN = 90.0


def waits_of(app: Windlass, most: int = 1000) -> list[ExternalWait]:
    return app.executions.pending(limit=most).items


def finish(stage: PipelineStage, found: list[DeadWorker]) -> None:
    """Have a sound worker do what is left, and answer everything that waits then: lines with their number."""
    worker = stage.start()
    expected = sum(dead.order.lines or 1 for dead in found)
    waits = until(lambda: seen if len(seen := waits_of(stage.app)) == expected else None, "all waits to be open")
    stage.app.executions.complete_many(
        [(wait.token, wait.request if isinstance(wait.request, int) else 7) for wait in waits]
    )
    stage.settled()
    worker.terminate()
    assert worker.exit_code() == 0
    stage.in_order()


def test_an_execution_parks_with_its_wait_or_not_at_all(pipeline_stage: PipelineStage):
    """P8.1, P9.C1: before the commit the body runs again under its effect key; after it, it is not called again."""
    stage = pipeline_stage
    before, after = stage.killed_at(
        {"wait.before_park@1": ("approval", Order("o0")), "wait.after_park@1": ("approval", Order("o1"))}
    )
    assert stage.log(before.run) == [("submitted", 0), ("step", 0)]
    assert stage.log(after.run) == [("submitted", 0), ("step", 0), ("parked", 1)]
    assert [wait.execution_id for wait in waits_of(stage.app)] == [after.run.id]
    finish(stage, [before, after])
    for dead, calls in ((before, 2), (after, 1)):
        assert dead.run.result(1) == 7
        assert stage.log(dead.run) == [("submitted", 0), ("step", 0), ("parked", 1), ("answered", 1), ("ended", 2)]
        asked = stage.calls("ask", dead.order.name)
        assert asked == [(f"{dead.run.id}:1:1", f"{dead.run.id}:1")] * calls


def test_items_park_with_their_waits_or_not_at_all(pipeline_stage: PipelineStage):
    """P8.1, P9.C1: in the claim of the execution and in parts; each line is asked under one effect key."""
    stage = pipeline_stage
    found = stage.killed_at(
        {
            "wait.before_park@2": ("asking", Order("o0", FEW)),
            "wait.after_park@2": ("asking", Order("o1", FEW)),
            "wait.before_park@4": ("asking", Order("o2", LINES)),
            "wait.after_park@9": ("asking", Order("o3", LINES)),
        }
    )
    finish(stage, found)
    for dead in found:
        assert dead.run.result(1) == sum(range(dead.order.lines)) * 2, dead.point
        for number in range(dead.order.lines):
            calls = stage.calls("ask", f"{dead.order.name}.{number}")
            assert {effect for _, effect in calls} == {f"{dead.run.id}:1:{number}"}, dead.point


def test_an_answer_is_stored_with_its_wakeup_or_not_at_all(pipeline_stage: PipelineStage):
    """P8.2, P9.C0: a caller dies before and after the commit; the first answer stands, and needs no second one."""
    stage = pipeline_stage
    runs = [stage.submit("approval", Order("o0")), stage.submit("asking", Order("o1", 1))]
    worker = stage.start()
    until(lambda: len(waits_of(stage.app)) == 2, "both to wait")
    for run, name in zip(runs, (f"{runs[0].id}:1", f"{runs[1].id}:1:0"), strict=True):
        for point, stored in (("answer.before_commit", 0), ("answer.after_commit", 1)):
            environ = {"WINDLASS_FAILPOINTS": f"{point}=kill"}
            caller = stage.programs.start("pipeline_caller", stage.url, "answer", name, environ=environ)
            assert caller.exit_code() == KILLED, caller.printed
            waiting = [wait.interaction_id for wait in waits_of(stage.app)]
            assert (name not in waiting) == stored, point
        assert run.join(RUN) is ExecutionStatus.SUCCEEDED
        again = stage.programs.start("pipeline_caller", stage.url, "answer", name)
        assert again.says(r"^answered (\S+ \S+)$")[1] == "7 True"
    assert [run.result(1) for run in runs] == [7, 14]
    worker.terminate()
    assert worker.exit_code() == 0
    stage.in_order()


@pytest.fixture
def app(proxy: TcpProxy) -> Iterator[Windlass]:
    """An application whose every connection goes through the proxy."""
    application = make_app(proxy.url, settings=QUICK)
    application.migrate()
    yield application
    application.close()


@CUTS
@pytest.mark.parametrize("lines", [0, 3, 25], ids=["value", "items of main", "items of parts"])
def test_a_park_whose_commit_was_cut_off_is_stored_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool, lines: int
):
    """P9.C8, P8.1: whether or not it had arrived; no body is called again."""
    shop, called = app.pipeline("shop", version="1", buffer=10), Counter[int]()
    if lines:

        @shop.expand
        def expand(number: int) -> Iterator[int]:
            yield from range(number)

    @shop.await_external(timeout=3600, answer=int)
    async def ask(number: int) -> int:
        called[number] += 1
        return number

    run = shop.submit(lines)
    (proxy.cut_after if arrives else proxy.cut_before)(b"INSERT INTO windlass_external_wait", 1, final=b"COMMIT")
    with app.worker():
        waits = until(lambda: found if len(found := waits_of(app)) == (lines or 1) else None, "all to wait")
        until(lambda: run.status() is ExecutionStatus.WAITING_EXTERNAL, "the execution to park")
        app.executions.complete_many([(wait.token, wait.request) for wait in waits])
        assert run.result(RUN) == (list(range(lines)) if lines else 0)
    assert proxy.cuts == 1
    assert set(called.values()) == {1}
    assert one(pg_url, "SELECT count(*) FROM windlass_external_wait") == (lines or 1)
    check_executions(pg_url)


@CUTS
def test_an_answer_whose_commit_was_cut_off_may_be_sent_again(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool
):
    """P9.C8, P8.2: it is a duplicate if it had arrived, with the first answer; never a second one."""
    shop = app.pipeline("shop", version="1")

    @shop.await_external(timeout=3600, answer=int)
    async def ask(number: int) -> int:
        return number

    run = shop.submit(1)
    with app.worker():
        (wait,) = until(lambda: waits_of(app), "it to wait")
        mark = b"UPDATE windlass_external_wait SET status = 'COMPLETED'"
        (proxy.cut_after if arrives else proxy.cut_before)(mark, 1, final=b"COMMIT")
        with pytest.raises(StoreUnavailableError):
            app.executions.complete(wait.token, 5)
        again = app.executions.complete(wait.token, 6)
        assert (again.duplicate, again.answer) == ((True, 5) if arrives else (False, 6))
        assert run.result(RUN) == again.answer
    assert rows(pg_url, "SELECT kind FROM windlass_transition ORDER BY version") == [
        (kind,) for kind in ("submitted", "parked", "ended")
    ]
    check_executions(pg_url)
