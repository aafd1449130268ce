"""Batches: children from items, counted together, and what follows when all have ended."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.engine.apps import LONG, Apps
from tests.flow import batch_bodies
from tests.flow.batch_bodies import Items, all_failed, child_states, children, half_failed, raises
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, id_of, states
from windlass import RESULT, BatchHandle, BatchProgress, JobStatus, Windlass, group
from windlass.errors import InvalidOptionError, JobNotFoundError, JobStateError, TargetNotAllowedError
from windlass.testing import drain

S = JobStatus


def complete(total: int, failed: int = 0) -> BatchProgress:
    rate = (total - failed) / total if total else 1.0
    return BatchProgress(total, total - failed, failed, 100.0, rate, complete=True)


def test_each_item_is_a_child_with_it_as_its_argument(app: Windlass, jobs: Jobs):
    """J8.4: children are ordinary jobs, and know their batch."""
    handle = app.batch("letters").each(jobs.step, ["a", "b", "c"]).enqueue()
    assert [job.args for job in children(app, handle)] == [("a",), ("b",), ("c",)]
    assert handle.progress() == BatchProgress(3, 0, 0, 0.0, 1.0, complete=False)
    assert (handle.status(), handle.duplicate) == (S.PENDING, False)
    drain(app)
    assert RAN == ["a", "b", "c"]
    assert (handle.status(), handle.join(LONG), handle.progress()) == (S.SUCCEEDED, S.SUCCEEDED, complete(3))
    batch = app.get(handle.id)
    assert (batch.target, batch.args, batch.batch_id, batch.attempts) == ("windlass:batch", ("letters",), None, 0)


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_items_come_from_any_iterable_in_chunks(app: Windlass, jobs: Jobs, size: int):
    """J8.4: a list, a generator, an iterator; however many fit into the last chunk."""
    for items in (list("abcde"), (letter for letter in "abcde"), iter("abcde"), dict.fromkeys("abcde", 1)):
        handle = app.batch("letters").each(jobs.step, items, chunk_size=size).enqueue()
        assert [job.args[0] for job in children(app, handle)] == list("abcde")
        assert handle.progress().total == 5


def test_items_come_from_async_iterables(app: Windlass, jobs: Jobs):
    """J8.4: aenqueue awaits them; iterables are read on a thread there."""

    async def letters() -> AsyncIterator[str]:
        for letter in "abcde":
            await asyncio.sleep(0)
            yield letter

    async def main() -> None:
        handle = await app.batch("letters").each(jobs.step, letters(), chunk_size=2).aenqueue()
        again = await app.batch("letters").each(jobs.step, iter("xyz"), chunk_size=2).aenqueue()
        assert ((await handle.aprogress()).total, (await again.aprogress()).total) == (5, 3)
        assert await again.astatus() is S.PENDING

    asyncio.run(main())
    with pytest.raises(InvalidOptionError, match="await aenqueue"):
        app.batch("letters").each(jobs.step, letters()).enqueue()


def test_children_run_during_loading(app: Windlass, jobs: Jobs):
    """J8.4: each chunk is committed by itself; the batch does not end before all are stored."""
    seen: list[tuple[int, JobStatus]] = []

    def items() -> Iterator[str]:
        for number in range(4):
            if number == 2:
                drain(app)
                handle = app.batch_handle(next(job.id for job in app.find(target="windlass:batch")))
                seen.append((handle.progress().completed, handle.status()))
                assert handle.progress().percent == 100
                assert not handle.progress().complete
            yield f"item {number}"

    handle = app.batch("slow").each(jobs.step, items(), chunk_size=2).enqueue()
    assert seen == [(2, S.PENDING)]
    drain(app)
    assert (handle.status(), handle.progress()) == (S.SUCCEEDED, complete(4))


def test_empty_batch_succeeds(app: Windlass, jobs: Jobs):
    """J8.4: at once, and releases what follows."""
    handle = app.batch("none").each(jobs.step, []).then_on_batch_success(jobs.step.bind("after")).enqueue()
    assert (handle.status(), handle.progress()) == (S.SUCCEEDED, complete(0))
    drain(app)
    assert RAN == ["after"]


def test_followers_of_a_batch_by_its_outcome(app: Windlass, jobs: Jobs):
    """J8.4: success, failure, a success rate and a failure count decide; the rest is canceled, with the reason."""
    BROKEN.add("b")

    def batch() -> BatchHandle:
        made = app.batch("letters").each(jobs.step, ["a", "b", "c", "d"])
        made = made.then_on_batch_success(jobs.step.bind("success")).then_on_batch_failure(jobs.step.bind("failure"))
        made = made.when_success_rate(0.75, jobs.step.bind("rate 75")).when_success_rate(0.76, jobs.step.bind("76"))
        made = made.when_failure_count(1, jobs.step.bind("one")).when_failure_count(2, jobs.step.bind("two"))
        return made.enqueue()

    handle = batch()
    assert RAN == []
    drain(app)
    assert (handle.status(), handle.progress()) == (S.FAILED, complete(4, 1))
    assert sorted(RAN[4:]) == ["failure", "one", "rate 75"]
    found = states(app)
    assert (found["success"], found["76"], found["two"]) == (
        "CANCELED upstream_failed",
        "CANCELED not_chosen",
        "CANCELED not_chosen",
    )


def test_success_of_a_batch_cancels_what_follows_its_failure(app: Windlass, jobs: Jobs):
    """J8.4: reason not_chosen."""
    made = app.batch("letters").each(jobs.step, ["a"]).then_on_batch_failure(jobs.step.bind("failure"))
    made.then_on_batch_success(jobs.step.bind("b").then(jobs.step.bind("c"))).enqueue()
    drain(app)
    assert states(app) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SUCCEEDED", "failure": "CANCELED not_chosen"}


def test_followers_take_the_progress_as_result(app: Windlass, jobs: Jobs):
    """J8.1, J8.4: RESULT is the progress; a group may follow, and the correlation id is passed on."""
    made = app.batch("letters", correlation_id="c1").each(jobs.step, ["a"])
    made.then_on_batch_success(
        group(jobs.take_id.bind(RESULT["total"], "x"), jobs.step.bind("y")).then(jobs.join)
    ).enqueue()
    drain(app)
    (join,) = app.find(target=jobs.join.target)
    assert (join.result, join.correlation_id) == (["1 x", "y"], "c1")
    assert {job.correlation_id for job in app.find()} == {"c1"}


def test_children_keep_their_own_retries(app: Windlass, jobs: Jobs):
    """J8.4: only the end of a child counts."""
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step.using(max_retries=2, tags=["t"], queue="q"), ["a"]).enqueue()
    drain(app)
    assert (RAN, handle.progress()) == (["a", "a", "a"], complete(1, 1))
    (child,) = app.find(tag="t")
    assert (child.queue, child.attempts) == ("q", 3)


def test_canceled_child_counts_as_failed(app: Windlass, jobs: Jobs):
    """J8.4: and the batch ends with it."""
    handle = app.batch("letters").each(jobs.step, ["a", "b"]).enqueue()
    assert app.cancel(id_of(app, "b"))
    drain(app)
    assert (handle.status(), handle.progress()) == (S.FAILED, complete(2, 1))


def test_failed_batch_is_no_dead_letter(app: Windlass, jobs: Jobs):
    """J8.4: its children are; retry_many leaves it out, and so do alerts."""
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step, ["a"]).enqueue()
    drain(app)
    assert [letter.job_id for letter in app.dead_letters.find()] == [children(app, handle)[0].id]
    assert [alert.target.rpartition(":")[2] for alert in app.alerts.find()] == ["step"]
    BROKEN.clear()
    assert app.retry_many() == 1
    assert handle.status() is S.PENDING
    drain(app)
    assert handle.status() is S.SUCCEEDED
    assert app.retry_many() == 0


# ---------------------------------------------------------------------- going on


def test_iterable_that_raises_leaves_the_batch_open(app: Windlass, jobs: Jobs):
    """J8.4: the error says how to go on; what is stored runs."""
    batch = app.batch("file", idempotency_key="file 1")
    with pytest.raises(OSError, match="broken") as caught:
        batch.each(jobs.step, Items(10, raises_at=5), chunk_size=2).enqueue()
    (opened,) = app.find(target="windlass:batch")
    (note,) = caught.value.__notes__
    assert str(opened.id) in note
    assert "4 items are stored" in note
    drain(app)
    handle = app.batch_handle(opened.id)
    assert (handle.status(), handle.progress().completed, handle.progress().complete) == (S.PENDING, 4, False)
    again = batch.each(jobs.step, Items(10), chunk_size=2).enqueue()
    assert (again.id, again.duplicate) == (opened.id, False)
    drain(app)
    assert (again.status(), sorted(RAN)) == (S.SUCCEEDED, sorted(f"item {number}" for number in range(10)))


def test_loaded_batch_is_a_duplicate(app: Windlass, jobs: Jobs):
    """J8.4: the same key again reads no item and stores nothing, while it runs and after its end."""
    batch = app.batch("file", idempotency_key="file 1")
    first = batch.each(jobs.step, Items(3)).enqueue()
    for _ in range(2):
        items = Items(3)
        again = batch.each(jobs.step, items).then_on_batch_success(jobs.nothing.bind()).enqueue()
        assert (again.id, again.duplicate, items.read) == (first.id, True, 0)
        drain(app)
    assert len(RAN) == 3


def test_loading_is_resumed_by_the_id_of_the_batch(app: Windlass, jobs: Jobs):
    """J8.4: without a key; an unknown id is refused."""
    with pytest.raises(OSError, match="broken"):
        app.batch("file").each(jobs.step, Items(10, raises_at=9), chunk_size=4).enqueue()
    (opened,) = app.find(target="windlass:batch")
    handle = app.batch("file").each(jobs.step, Items(10), chunk_size=3).enqueue(resume=opened.id)
    assert (handle.id, handle.progress().total) == (opened.id, 10)
    assert app.batch("file").each(jobs.step, Items(10)).enqueue(resume=str(opened.id)).duplicate
    with pytest.raises(JobNotFoundError):
        app.batch("file").each(jobs.step, Items(1)).enqueue(resume=children(app, handle)[0].id)


def test_two_loaders_cannot_both_store_a_chunk(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.4: the second gets an error that names the first, and no item is doubled."""
    batch = app.batch("file", idempotency_key="k")

    def items() -> Iterator[str]:
        yield "item 0"
        yield "item 1"
        with pytest.raises(OSError, match="broken"):
            app.batch("file", idempotency_key="k").each(jobs.step, Items(10, raises_at=5), chunk_size=2).enqueue()
        yield "item 2"
        yield "item 3"

    with pytest.raises(JobStateError, match=r"another loader, process \d+ on .*, has stored items up to number 4"):
        batch.each(jobs.step, items(), chunk_size=2).enqueue()
    (opened,) = app.find(target="windlass:batch")
    assert [job.args[0] for job in children(app, app.batch_handle(opened.id))] == [f"item {n}" for n in range(4)]


def test_fewer_items_than_are_stored_are_refused(app: Windlass, jobs: Jobs):
    """J8.4: they cannot be the same items."""
    batch = app.batch("file", idempotency_key="k")
    with pytest.raises(OSError, match="broken"):
        batch.each(jobs.step, Items(10, raises_at=6), chunk_size=2).enqueue()
    with pytest.raises(JobStateError, match="6 items are stored, but the items given now end 3 before that"):
        batch.each(jobs.step, Items(3)).enqueue()


# ---------------------------------------------------------------------- refused


def test_refused_batches_store_nothing(app: Windlass, jobs: Jobs):
    """J8.4: the error says what to write instead."""
    batch = app.batch("letters")
    refused: dict[str, Callable[[], object]] = {
        "needs items": batch.enqueue,
        "each.* is given once": lambda: batch.each(jobs.step, []).each(jobs.step, []),
        "single jobs": lambda: batch.each(jobs.step.bind("a").then(jobs.step.bind("b")), ["a"]),  # type: ignore[arg-type]
        "takes items to iterate over": lambda: batch.each(jobs.step, "abc"),
        "chunk_size is a whole number": lambda: batch.each(jobs.step, [], chunk_size=0),
        "number from 0 to 1": lambda: batch.when_success_rate(95, jobs.nothing.bind()),
        "a failure count is": lambda: batch.when_failure_count(0, jobs.nothing.bind()),
        "needs a name": lambda: app.batch(" "),
        "has no max_retries": lambda: app.batch("x", max_retries=3),
        "transactions of its own": lambda: app.batch("x", connection=sqlite3.connect(":memory:")),
        "all children of the batch would share": lambda: batch.each(jobs.step.using(business_key="k"), ["a"]).enqueue(),
        "at most 1,000 jobs behind it": lambda: (
            batch.each(jobs.step, ["a"])
            .then_on_batch_success(group(*[jobs.nothing.bind() for _ in range(1001)]))
            .enqueue()
        ),
    }
    for message, act in refused.items():
        with pytest.raises(InvalidOptionError, match=message):
            act()
    with pytest.raises(TypeError, match="argument"):
        batch.each(jobs.nothing, ["a"]).enqueue()  # type: ignore[arg-type]
    with pytest.raises(TargetNotAllowedError):
        batch.each(print, ["a"]).enqueue()
    assert list(app.find()) == []


def test_key_of_another_job_is_refused(app: Windlass, jobs: Jobs):
    """J1.4: a batch is no duplicate of a job that is none."""
    jobs.step.using(idempotency_key="k").enqueue("a")
    with pytest.raises(InvalidOptionError, match="is no batch but"):
        app.batch("letters", idempotency_key="k").each(jobs.step, ["b"]).enqueue()


def test_children_are_searched_and_counted_like_other_jobs(app: Windlass, jobs: Jobs):
    """J8.4: and the batch is found by its target, tags and keys."""
    handle = app.batch("letters", tags=["import"], business_key="bk").each(jobs.step, ["a", "b"]).enqueue()
    assert [job.id for job in app.find(tag="import")] == [handle.id]
    assert [job.id for job in app.find(business_key="bk")] == [handle.id]
    assert child_states(app, handle) == {"PENDING": 2}
    drain(app)
    again = app.batch("letters", business_key="bk").each(jobs.step, ["a"]).enqueue()
    assert (again.id != handle.id, again.duplicate) == (True, False)


# ---------------------------------------------------------------------- predicates


def test_when_batch_runs_its_step_if_the_predicate_holds(app: Windlass, jobs: Jobs):
    """J8.4: called with the progress by the step's own attempt; else it ends CANCELED, and the body is not entered."""
    BROKEN.add("b")
    app.job(batch_bodies.child)
    made = app.batch("letters").each(jobs.step, ["a", "b"]).when_batch(half_failed, jobs.step.bind("half"))
    made = made.when_batch(all_failed, jobs.step.bind("all").then(jobs.step.bind("behind")))
    handle = made.when_batch(raises, jobs.step.bind("raised")).enqueue()
    drain(app)
    assert handle.status() is S.FAILED
    found = states(app)
    assert (found["half"], RAN.count("half")) == ("SUCCEEDED", 1)
    assert (found["all"], found["behind"]) == ("CANCELED not_chosen", "CANCELED not_chosen")
    assert (found["raised"], {"all", "behind", "raised"} & set(RAN)) == ("CANCELED predicate_failed", set())


def test_predicate_is_called_again_after_a_retry(app: Windlass, jobs: Jobs):
    """J2.4, J8.4: the batch ends anew, and what was not chosen is decided again."""
    BROKEN.update("ab")
    app.job(batch_bodies.child)
    handle = app.batch("letters").each(jobs.step, ["a", "b"]).when_batch(half_failed, jobs.step.bind("half")).enqueue()
    drain(app)
    assert states(app)["half"] == "CANCELED not_chosen"
    BROKEN.remove("a")
    assert handle.retry_failed() == 2
    drain(app)
    assert (states(app)["half"], RAN.count("half")) == ("SUCCEEDED", 1)


def test_graph_shows_a_batch_as_one_node_with_its_counts(app: Windlass, jobs: Jobs):
    """J8.4: its children are no nodes; conditions are named at their edges."""
    made = app.batch("letters").each(jobs.step, list("abcd")).then_on_batch_success(jobs.step.bind("success"))
    made = made.when_success_rate(0.5, jobs.step.bind("rate")).when_failure_count(2, jobs.step.bind("count"))
    handle = made.enqueue()
    graph = handle.graph()
    assert [node.target.rpartition(":")[2] for node in graph.nodes] == ["batch", "step", "step", "step"]
    assert graph.nodes[0].progress == handle.progress()
    assert [(edge.kind, edge.label) for edge in graph.edges] == [
        ("then", ""),
        ("when", "success rate ≥ 0.5"),
        ("when", "failures ≥ 2"),
    ]
