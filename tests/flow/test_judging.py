"""Predicates on a worker: when they are called, what stops them, and what decides if they were not called."""

import threading
from collections.abc import Sequence

import pytest

from tests.engine.apps import LONG, Apps, Shop, count, on_loop, query, settled, until
from tests.engine.fixtures import shop
from tests.flow import branch_bodies
from tests.flow.branch_bodies import ASKED, BranchJobs
from tests.flow.flow_bodies import BROKEN, RAN, all_jobs
from windlass import (
    RESULT,
    FlowsSettings,
    Job,
    JobHandle,
    JobStatus,
    NodeSettings,
    Settings,
    Windlass,
    WorkflowBranchTriggered,
)
from windlass.domain.branches import Guard
from windlass.domain.clock import VirtualClock
from windlass.domain.dependencies import EndedStep, Follows
from windlass.feature import Feature, GuardSource
from windlass.node import Node
from windlass.runtime.failpoints import armed
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import flows
from windlass.submission.stored_options import StoredFlow, with_flow
from windlass.testing import drain
from windlass.testing.contract.flow_setup import FlowDraft
from windlass.testing.contract.workbench import Workbench
from windlass.testing.drain import EndlessDrainError
from windlass.worker import Worker

__all__ = ["shop"]

QUICK_SWEEPS = NodeSettings(unknown_target_after=0, sweep_interval=0.05, recovery_interval=0.05)


@pytest.fixture(autouse=True)
def _nothing_asked():
    ASKED.clear()
    branch_bodies.IN_PREDICATE.clear()
    branch_bodies.GO_ON.clear()
    yield
    branch_bodies.GO_ON.set()


def found(app: Windlass, name: str) -> Job:
    return next(job for job in all_jobs(app) if job.args and job.args[0] == name)


def state(app: Windlass, name: str) -> tuple[JobStatus, str | None]:
    job = found(app, name)
    return job.status, job.reason


def waiting_in_predicate(jobs: BranchJobs) -> JobHandle[int]:
    """A job that has ended, whose branch is being judged until `GO_ON` is set."""
    handle = jobs.double.bind(3).when_result(branch_bodies.waits, jobs.note.bind("x")).enqueue()
    assert branch_bodies.IN_PREDICATE.wait(LONG)
    return handle


# ---------------------------------------------------------------------- while predicates are called


def test_predicate_that_takes_too_long_cancels_its_own_branch(apps: Apps):
    """J8.2: after `flows.predicate_timeout`, with the reason; the others fire."""
    app = apps(settings=Settings(flows=FlowsSettings(predicate_timeout=2)))
    jobs = BranchJobs(app)
    flow = jobs.double.bind(3).when_result(branch_bodies.hangs, jobs.note.bind("late"))
    flow.when_result(branch_bodies.yes, jobs.note.bind("x")).enqueue()
    drain(app)
    late = found(app, "late")
    assert (late.status, late.reason, late.error_class) == (
        JobStatus.CANCELED,
        "predicate_failed",
        "PredicateTimeoutError",
    )
    assert "flows.predicate_timeout" in str(late.error)
    assert state(app, "x") == (JobStatus.SUCCEEDED, None)


def test_no_transaction_is_open_while_predicates_run(apps: Apps):
    """J8.2, J4.1: another program writes meanwhile, also to SQLite, which has one writer."""
    app, other = apps(), apps()
    jobs = BranchJobs(app)
    with app.worker():
        handle = waiting_in_predicate(jobs)
        later = other.job(branch_bodies.note).using(delay=3600).enqueue("other")
        assert later.status() is JobStatus.PENDING
        assert handle.status() is JobStatus.RUNNING
        branch_bodies.GO_ON.set()
        until(lambda: handle.graph().ended)
    assert handle.status() is JobStatus.SUCCEEDED


def test_attempt_that_is_being_judged_is_unwritten_and_holds_its_claim(apps: Apps):
    """J7.2, J8.2: its slot is free; it counts among the claims of its node, so no other node claims it."""
    app = apps()
    jobs = BranchJobs(app)
    worker = app.worker(concurrency=1)
    with worker:
        handle = waiting_in_predicate(jobs)
        node = worker.node
        assert node is not None
        assert [job for job, _ in node.completer.unwritten] == [str(handle.id)]
        assert str(handle.id) in {job for job, _ in node.slots.held()}
        until(lambda: node.slots.running == 0)
        assert jobs.note.enqueue("other").result(timeout=LONG) == "other"
        branch_bodies.GO_ON.set()
        assert handle.result(timeout=LONG) == 6
        until(lambda: state(app, "x") == (JobStatus.SUCCEEDED, None))


def test_cancel_while_predicates_run_wins(apps: Apps):
    """J2.2, J8.2: the outcome comes too late, by its fence, and no branch fires."""
    app = apps()
    jobs = BranchJobs(app)
    with app.worker() as worker:
        handle = waiting_in_predicate(jobs)
        assert handle.cancel()
        branch_bodies.GO_ON.set()
        assert worker.node is not None
        completer = worker.node.completer
        until(lambda: completer.stale == 1)
    assert state(app, "x") == (JobStatus.CANCELED, "upstream_canceled")
    assert handle.status() is JobStatus.CANCELED
    assert "x" not in RAN


def test_drain_waits_for_predicates(apps: Apps):
    """J7.6, J8.2: the outcome is written with its decisions."""
    app = apps()
    jobs = BranchJobs(app)
    with app.worker() as worker:
        handle = waiting_in_predicate(jobs)
        opener = _goes_on_once_draining(worker)
    opener.join()
    assert handle.status() is JobStatus.SUCCEEDED
    assert state(app, "x")[0] in (JobStatus.PENDING, JobStatus.SUCCEEDED)
    assert query(apps.url, "SELECT count(*) FROM windlass_flow WHERE follows = 6") == [(0,)]


def _goes_on_once_draining(worker: Worker) -> threading.Thread:
    """Let the predicate end when the worker claims no more; gives the thread that waits for that."""
    node = worker.node
    assert node is not None

    def wait_and_go_on() -> None:
        until(lambda: not node.poller.alive)
        branch_bodies.GO_ON.set()

    thread = threading.Thread(target=wait_and_go_on)
    thread.start()
    return thread


@pytest.mark.parametrize("forced", [False, True])
def test_guards_decide_branches_whose_predicates_a_drain_has_stopped(apps: Apps, *, forced: bool):
    """J7.6, J8.2: the outcome is written; the branch calls its predicate itself, on another node."""
    app = apps(settings=Settings(node=NodeSettings(drain_timeout=3600 if forced else 0)))
    jobs = BranchJobs(app)
    with app.worker() as worker:
        handle = waiting_in_predicate(jobs)
        assert worker.node is not None
        if forced:
            on_loop(worker, _forced(worker.node))
    assert handle.status() is JobStatus.SUCCEEDED
    assert (state(app, "x"), RAN) == ((JobStatus.PENDING, None), ["double 3"])
    branch_bodies.GO_ON.set()
    fired: list[WorkflowBranchTriggered] = []
    app.on(WorkflowBranchTriggered)(fired.append)
    drain(app)
    until(lambda: len(fired) == 1)
    assert RAN == ["double 3", "x"]
    assert (fired[0].parent_id, fired[0].child_id) == (handle.id, found(app, "x").id)


async def _forced(node: Node) -> None:
    node.slots.force()


# ---------------------------------------------------------------------- guards


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (branch_bodies.is_small, (JobStatus.SUCCEEDED, None)),
        (branch_bodies.is_large, (JobStatus.CANCELED, "not_chosen")),
        (branch_bodies.raises, (JobStatus.CANCELED, "predicate_failed")),
        (branch_bodies.hangs, (JobStatus.CANCELED, "predicate_failed")),
    ],
)
def test_guarded_follower_calls_its_predicate_before_its_body(apps: Apps, predicate, expected):
    """J8.2: and ends CANCELED without entering it if that does not hold, with what is behind it."""
    app = apps(settings=Settings(flows=FlowsSettings(predicate_timeout=2)))
    jobs = BranchJobs(app)
    flow = jobs.double.bind(3).when_result(predicate, jobs.note.bind("x").then(jobs.note.bind("behind")))
    flow.enqueue()
    _end_head_unjudged(app)
    drain(app)
    assert state(app, "x") == expected
    assert ("x" in RAN, "behind" in RAN) == (expected[1] is None, expected[1] is None)
    if expected[1] is not None:
        assert [attempt.outcome for attempt in app.history(found(app, "x").id)] == [expected[1]]
        assert found(app, "behind").status is JobStatus.CANCELED


def _end_head_unjudged(app: Windlass) -> None:
    """Run the head; its branches cannot be judged, which is what a failpoint does to it."""
    with armed("judge.before=raise@1"), pytest.raises(EndlessDrainError):
        drain(app, limit=1)


def test_guarded_cases_of_a_choice_take_the_first_match(app: Windlass):
    """J8.2: each asks those before it, so that one of them runs."""
    jobs = BranchJobs(app)
    jobs.double.bind(3).choose(
        (branch_bodies.is_large, jobs.note.bind("large")),
        (branch_bodies.is_even, jobs.note.bind("even", RESULT)),
        (branch_bodies.is_small, jobs.note.bind("small")),
        otherwise=jobs.note.bind("otherwise"),
    ).enqueue()
    _end_head_unjudged(app)
    drain(app)
    assert RAN == ["double 3", "even 6"]
    assert {state(app, name) for name in ("large", "small", "otherwise")} == {(JobStatus.CANCELED, "not_chosen")}


def test_guard_is_judged_once_for_all_attempts(app: Windlass):
    """J8.2: a retry of the follower does not ask again."""
    jobs = BranchJobs(app)
    jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.step.using(max_retries=2).bind("x")).enqueue()
    _end_head_unjudged(app)
    BROKEN.add("x")
    drain(app)
    assert (RAN, ASKED) == (["double 3", "x", "x", "x"], ["small 6"])


def test_followers_of_a_job_that_ended_without_an_attempt_call_their_own_predicates(apps: Apps, shop: Shop):
    """J8.2, J6.3: no node knew the target; `when` sees the JobResult, a value predicate is not asked."""
    newer = shop.load(NEWER.format(url=apps.url))
    newer.app.migrate()
    handle = newer.flow().enqueue()
    newer.app.close()
    shop.unload()
    app = apps(settings=Settings(node=QUICK_SWEEPS))
    BranchJobs(app)
    with app.worker():
        assert settled(app, handle.id).reason == "target_not_found"
        until(lambda: state(app, "failed")[0] is JobStatus.SUCCEEDED)
        until(lambda: state(app, "never")[0] is JobStatus.CANCELED)
    assert sorted(ASKED) == ["failed fresh TargetNotFoundError", "never"]
    assert state(app, "never") == state(app, "value") == (JobStatus.CANCELED, "not_chosen")
    assert RAN == ["failed"]


NEWER = """
from tests.flow import branch_bodies
from windlass import Windlass
app = Windlass({url!r}, allow=["tests.flow.branch_bodies"])

@app.job
def fresh(number: int) -> int:
    return number

def note(name):
    return app.bind(branch_bodies.note, name)

def flow():
    flow = fresh.bind(1).when(branch_bodies.has_failed, note("failed")).when(branch_bodies.never, note("never"))
    return flow.when_result(branch_bodies.is_small, note("value"))

def is_new(number: int) -> bool:
    return True
"""


# ---------------------------------------------------------------------- predicates that are not known, or not allowed


def test_job_whose_predicate_is_unknown_runs_on_a_node_that_knows_it(apps: Apps, shop: Shop):
    """J8.2, J6.3: before its body; an attempt is not spent, and `explain` names the predicate."""
    app = apps(settings=Settings(node=NodeSettings(sweep_interval=0.05)))
    BranchJobs(app)
    newer = shop.load(NEWER.format(url=apps.url))
    head = newer.app.bind(branch_bodies.note, "head")
    handle = head.when_result(newer.is_new, newer.note("x")).enqueue()
    newer.app.close()
    shop.unload()
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(handle.id)] == ["passed_over"])
        assert (RAN, app.get(handle.id).attempts) == ([], 0)
        assert "is_new" in app.explain(handle.id).message
        module = shop.load(NEWER.format(url=apps.url))
        with module.app.worker():
            until(lambda: state(app, "x") == (JobStatus.SUCCEEDED, None))
        module.app.close()
    assert RAN == ["head", "x"]


def test_job_whose_predicate_is_not_allowed_any_more_fails_before_its_body(apps: Apps):
    """J8.2, J6.3: checked again at run, as targets are."""
    open_app = apps(allow=["tests.flow.branch_bodies"])
    call = open_app.bind(branch_bodies.note, "head")
    handle = call.when_result(branch_bodies.yes, open_app.bind(branch_bodies.note, "x")).enqueue()
    strict = apps(target_policy=_OnlyNote())
    with strict.worker():
        job = settled(strict, handle.id)
    assert (job.status, job.reason, job.attempts) == (JobStatus.FAILED, "target_not_allowed", 0)
    assert (RAN, ASKED) == ([], [])


class _OnlyNote:
    def allows(self, target: str) -> bool:
        return target.endswith(":note")


def test_follower_whose_branch_is_decided_needs_no_predicate(apps: Apps):
    """J8.2: only a guarded one calls its predicate."""
    app = apps(clock=VirtualClock())
    jobs = BranchJobs(app)
    jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("x")).enqueue()
    drain(app, limit=2)
    assert (RAN, ASKED) == (["double 3", "x"], ["small 6"])
    assert count(apps.url, "flow") == 2


# ---------------------------------------------------------------------- guards of other features


def _draft(app: Windlass, about: str) -> tuple[str, str]:
    """Store a parent in another queue, and a follower that is guarded by something about it; return both ids."""
    draft = FlowDraft()
    head = draft.job(queue="later", target="tests.flow.flow_bodies:nothing", args="[[],{}]")
    options = with_flow(None, StoredFlow(guard=Guard(about, "tests.flow.branch_bodies:is_small", description="few")))
    target = "tests.flow.branch_bodies:note"
    child = draft.job(head, Follows.DECIDED, target=target, args='[["x"],{}]', options=options)
    draft.store(Workbench(app.parts.database, VirtualClock()))
    step = EndedStep(head, JobStatus.SUCCEEDED, frozenset({Follows.DECIDED}), None)
    app.parts.database.run(flows.follow, [step])
    return head, child


@pytest.mark.parametrize(("size", "expected"), [(3, JobStatus.SUCCEEDED), (30, JobStatus.CANCELED)])
def test_feature_supplies_what_its_guards_are_about(apps: Apps, size: int, expected: JobStatus):
    """J8.2: the predicate of the follower gets what the source reads for its parent."""
    app = apps(clock=VirtualClock())
    BranchJobs(app)

    def read(dialect: Dialect, parents: Sequence[str]) -> Plan[dict[str, int]]:
        del dialect
        yield from ()
        return dict.fromkeys(parents, size)

    app.exchange(app.parts._replace(features=(Feature("sizes", guards=(GuardSource("size", read),)),)))
    _, child = _draft(app, "size")
    fired: list[WorkflowBranchTriggered] = []
    app.on(WorkflowBranchTriggered)(fired.append)
    drain(app, queues=["default"])
    assert (app.get(child).status, ASKED) == (expected, [f"small {size}"])
    assert [event.description for event in fired] == (["few"] if expected is JobStatus.SUCCEEDED else [])


def test_guarded_follower_waits_for_a_parent_that_was_started_over(apps: Apps):
    """J2.4, J8.2: claimed while its parent is retried, it spends no attempt, and asks once that has ended."""
    app = apps(clock=VirtualClock())
    BranchJobs(app)
    _, child = _draft(app, "outcome")
    assert drain(app, queues=["default"]).deferred == 1
    job = app.get(child)
    assert (job.status, job.attempts, ASKED) == (JobStatus.PENDING, 0, [])
