"""The layout of flows: which job follows which, and in which order they are stored."""

from typing import Any

from windlass import Flow, Windlass, group
from windlass.domain.dependencies import Follows
from windlass.submission.flow_layout import LaidJob, Layout, layout_of

app = Windlass("sqlite://")


@app.job
def step(name: Any) -> str:
    return str(name)


def laid(flow: Flow[Any]) -> list[tuple[str, str, str]]:
    """Every job in order: its name, what it follows and how, and the group that it counts for."""
    layout = layout_of(flow)
    return [(name_of(job), parent_of(layout, job), group_of(job)) for job in layout.jobs]


def name_of(job: LaidJob) -> str:
    return str(job.call.args[0])


def parent_of(layout: Layout, job: LaidJob) -> str:
    if job.parent is None:
        return ""
    kind = "" if job.parent.follows is Follows.THEN else f" {job.parent.follows.name.lower()}"
    if job.parent.job is not None:
        return name_of(layout.jobs[job.parent.job]) + kind
    assert job.parent.group is not None
    return f"group {job.parent.group.number}{kind}"


def group_of(job: LaidJob) -> str:
    return "" if job.group is None else f"group {job.group.number}"


def test_a_chain():
    """J8.1."""
    flow = step.bind("a").then(step.bind("b")).then(step.bind("c"))
    assert laid(flow) == [("a", "", ""), ("b", "a", ""), ("c", "b", "")]


def test_a_group_and_its_join():
    """J8.3: the handle is that of the join."""
    flow = group(step.bind("a"), step.bind("b")).then(step.bind("c"))
    assert laid(flow) == [("a", "", "group 0"), ("b", "", "group 0"), ("c", "group 0", "")]
    assert [job.answers for job in layout_of(flow).jobs] == [False, False, True]


def test_steps_of_a_member_come_before_the_next_member():
    """J8.3: the order of ids is that of results."""
    flow = group(step.bind("a").then(step.bind("b")), step.bind("c")).then(step.bind("d"))
    assert laid(flow) == [("a", "", ""), ("b", "a", "group 0"), ("c", "", "group 0"), ("d", "group 0", "")]


def test_members_of_nested_groups_count_for_the_outer_one():
    """J8.3: and the shape is kept for the results."""
    flow = group(step.bind("a"), group(step.bind("b"), step.bind("c")), step.bind("d")).then(step.bind("e"))
    assert {place for _, _, place in laid(flow)[:4]} == {"group 0"}
    parent = layout_of(flow).jobs[-1].parent
    assert parent is not None
    assert parent.shape == [1, [2], 1]


def test_inner_groups_have_lower_numbers():
    """flows §3: groups are locked in that order."""
    inner = group(step.bind("a")).then(step.bind("b"))
    assert laid(group(inner, step.bind("c")).then(step.bind("d"))) == [
        ("a", "", "group 0"),
        ("b", "group 0", "group 1"),
        ("c", "", "group 1"),
        ("d", "group 1", ""),
    ]


def test_a_group_behind_a_job_and_a_group_behind_a_group():
    """J8.3: every member follows what is before the group."""
    flow = step.bind("a").then(group(step.bind("b"), step.bind("c"))).then(group(step.bind("d"))).then(step.bind("e"))
    assert laid(flow) == [
        ("a", "", ""),
        ("b", "a", "group 0"),
        ("c", "a", "group 0"),
        ("d", "group 0", "group 1"),
        ("e", "group 1", ""),
    ]


def test_steps_for_failure_and_for_any_end():
    """J8.3: the main line goes on behind the group."""
    flow = group(step.bind("a")).then_on_failure(step.bind("b").then(step.bind("c"))).then_always(step.bind("d"))
    assert laid(flow) == [
        ("a", "", "group 0"),
        ("b", "group 0 failure", ""),
        ("c", "b", ""),
        ("d", "group 0 always", ""),
    ]


def test_a_job_stores_how_others_follow_it():
    """J8.7: its end asks for nothing that is not there."""
    flow = step.bind("a").then(step.bind("b"))
    assert [job.leads for job in layout_of(flow).jobs] == [{Follows.THEN}, set()]


def test_a_long_chain_is_laid_out_without_recursion():
    """J8.6."""
    flow: Flow[str] = step.bind(0).then(step.bind(1))
    for number in range(2, 5_000):
        flow = Flow((*flow.steps, *step.bind(number).then(step.bind(-number)).steps[:1]))
    assert len(layout_of(flow).jobs) == 5_000
