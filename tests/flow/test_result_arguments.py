"""Results as arguments: the whole or a part, typed, read when the follower is about to run."""

from datetime import UTC, datetime

import pytest

from tests.engine.apps import Apps
from tests.flow.flow_bodies import BROKEN, Jobs, all_jobs
from windlass import RESULT, FlowsSettings, JobsSettings, JobStatus, Settings, Windlass, group
from windlass.testing import drain


def last(app: Windlass):
    return all_jobs(app)[-1]


def test_a_follower_takes_the_result_by_its_own_annotation(app: Windlass, jobs: Jobs):
    """J8.1: a dataclass comes as one."""
    jobs.make_order.bind(7).then(jobs.take_order.bind(RESULT)).enqueue()
    drain(app)
    assert last(app).result == "order 7: tea, milk"


def test_an_unbound_job_takes_the_result(app: Windlass, jobs: Jobs):
    """J8.1: `then(job)` is `then(job.bind(RESULT))`."""
    jobs.make_order.bind(7).then(jobs.take_order).enqueue()
    drain(app)
    assert last(app).result == "order 7: tea, milk"


def test_a_follower_takes_parts_of_the_result(app: Windlass, jobs: Jobs):
    """J8.1: `RESULT["id"]`, and parts of parts, by position and by name."""
    jobs.make_order.bind(7).then(jobs.take_id.bind(RESULT["id"], line=RESULT["lines"][1])).enqueue()
    drain(app)
    assert last(app).result == "7 milk"


def test_a_follower_may_take_the_job_result(app: Windlass, jobs: Jobs):
    """flows §6: where the annotation says so."""
    jobs.double.bind(4).then(jobs.explain_one).enqueue()
    drain(app)
    assert last(app).result == "double (4,) gave 8"


def test_a_result_of_none_is_passed_on(app: Windlass, jobs: Jobs):
    """J8.1."""
    jobs.nothing.bind().then(app.job(is_none)).enqueue()
    drain(app)
    assert last(app).result is True


def is_none(value: int | None) -> bool:
    return value is None


def test_get_shows_the_placeholders_of_results(app: Windlass, jobs: Jobs):
    """flows §6: the template is what is stored."""
    jobs.make_order.bind(7).then(jobs.take_id.bind(RESULT["id"], line="tea")).enqueue()
    job = last(app)
    assert (job.args, job.kwargs) == ((RESULT["id"],), {"line": "tea"})
    assert repr(job.args[0]) == "RESULT['id']"


def test_each_attempt_takes_the_result_again(app: Windlass, jobs: Jobs):
    """J8.1: also the one after a failure."""
    BROKEN.add("a")
    jobs.step.bind("x").then(app.job(name_then_fail_once).using(max_retries=1).bind(RESULT)).enqueue()
    drain(app)
    assert last(app).result == "x again"


attempts: list[str] = []


def name_then_fail_once(name: str) -> str:
    attempts.append(name)
    if len(attempts) % 2:
        raise ValueError(name)
    return f"{name} again"


def poisoned(app: Windlass) -> str:
    job = last(app)
    assert (job.status, job.reason) == (JobStatus.FAILED, "poison_payload")
    return job.error or ""


def test_a_result_that_does_not_fit_fails_the_follower(app: Windlass, jobs: Jobs):
    """J8.1: as poison_payload, naming the parent; the body is not entered, retries are not spent."""
    head = jobs.step.bind("no number").then(jobs.double.using(max_retries=3).bind(RESULT)).enqueue()
    drain(app)
    assert str(head.id) in poisoned(app)
    assert last(app).attempts == 0


def test_a_part_that_does_not_exist_fails_the_follower(app: Windlass, jobs: Jobs):
    """J8.1: the error names it, and the parent."""
    head = jobs.make_order.bind(7).then(jobs.double.bind(RESULT["price"])).enqueue()
    drain(app)
    error = poisoned(app)
    assert "RESULT['price']" in error
    assert str(head.id) in error


def test_a_result_that_was_not_kept_fails_the_follower(apps: Apps, clock):
    """J1.6, flows §6: too large to be stored; the parent has succeeded."""
    app = apps(clock=clock, settings=Settings(jobs=JobsSettings(max_result_bytes=100)))
    jobs = Jobs(app)
    head = jobs.large.bind(200).then(jobs.join).enqueue()
    drain(app)
    assert head.status() is JobStatus.SUCCEEDED
    assert str(head.id) in poisoned(app)


def test_joined_results_over_the_limit_fail_the_join(apps: Apps, clock):
    """flows §6: before they are read."""
    app = apps(clock=clock, settings=Settings(flows=FlowsSettings(max_joined_bytes=1000)))
    jobs = Jobs(app)
    for size, fits in ((100, True), (400, False)):
        handle = group(*(jobs.large.bind(size) for _ in range(3))).then(jobs.join).enqueue()
        drain(app)
        assert (handle.status() is JobStatus.SUCCEEDED) == fits
    assert "flows.max_joined_bytes" in poisoned(app)


def test_a_poisoned_follower_cancels_what_follows_it(app: Windlass, jobs: Jobs):
    """J8.1: it has failed like any other."""
    jobs.step.bind("x").then(jobs.double).then(jobs.double).enqueue()
    drain(app)
    assert (last(app).status, last(app).reason) == (JobStatus.CANCELED, "upstream_failed")


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_results_reach_every_executor(apps: Apps, executor):
    """J4.2, J8.1: a process gets the filled-in arguments."""
    app = apps()
    jobs = Jobs(app)
    with app.worker():
        handle = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.join.using(executor=executor).bind(RESULT))
        assert handle.enqueue().result(timeout=90) == [2, 4]


def test_a_result_larger_than_a_payload_is_passed_on(app: Windlass, jobs: Jobs):
    """flows §6: payload limits are for what users pass."""
    members = [jobs.large.bind(50_000) for _ in range(5)]
    handle = group(*members).then(app.job(total_length)).enqueue()
    drain(app)
    assert handle.result() == 250_000


def total_length(texts: list[str]) -> int:
    return sum(map(len, texts))


def test_a_name_that_is_a_number_is_no_position(app: Windlass, jobs: Jobs):
    """J8.1: only what is marked is filled in."""
    collect = app.job(both)
    jobs.double.bind(1).then(collect.bind(7, **{"0": RESULT})).enqueue()
    assert (last(app).args, last(app).kwargs) == ((7,), {"0": RESULT})
    drain(app)
    assert last(app).result == [[7], {"0": 2}]


def both(*args: int, **kwargs: int) -> list[object]:
    return [list(args), kwargs]


def test_built_in_types_reach_a_parameter_without_annotation(app: Windlass, jobs: Jobs):
    """J8.1, J1.1: they are what the annotation of the result says."""
    app.job(make_date).bind().then(app.job(kind_of)).enqueue()
    drain(app)
    assert last(app).result == "datetime"


def make_date() -> datetime:
    return datetime(2030, 1, 1, tzinfo=UTC)


def kind_of(value) -> str:
    return type(value).__name__
