"""Lanes: what a lane's text says is what was put into it, whatever the key."""

from hypothesis import example, given
from hypothesis import strategies as st

from windlass.domain.keys import MAX_KEY, MAX_NAME, check_key, check_name
from windlass.domain.lanes import (
    CIRCUIT,
    NO_LANE,
    RESOURCE,
    Lane,
    general_gate,
    needed_targets,
    passed_over_lane,
    read_lane,
    resource_gate,
    target_named,
)

names = st.text("abz AZ09_.:-".replace(" ", ""), min_size=1, max_size=MAX_NAME)
keys = st.text(min_size=1, max_size=MAX_KEY).filter(lambda text: text.isprintable() and text.strip() != "")
targets = st.builds("{}:{}".format, names, names)


@st.composite
def lanes(draw: st.DrawFn) -> Lane:
    resource = draw(st.none() | names)
    key = None if resource is None else draw(st.none() | keys)
    return Lane(resource, key, draw(st.none() | names), draw(st.none() | targets))


@given(lanes())
@example(Lane("stripe", "a/b c%2F circuit:x", "gateway", "shop:charge"))
@example(Lane("a:b", "resource:x", "queue:y", "target:z"))
@example(Lane("stripe", "/"))
@example(Lane("stripe", "ünï 😀"))
def test_a_lane_is_restored_from_its_text(lane: Lane):
    """J6.2: any key that an option takes, and any mixture of gates."""
    assert read_lane(lane.text) == lane


@given(lanes(), lanes())
def test_different_lanes_have_different_texts(one: Lane, other: Lane):
    """J3.4: no two kinds of jobs ever share a lane by accident."""
    assert (one.text == other.text) == (one == other)


def test_most_jobs_have_no_lane():
    """J3.4: what waits for nothing but its queue carries nothing."""
    assert NO_LANE.text is None
    assert read_lane(None) == NO_LANE
    assert NO_LANE.gates == ()


@given(names, keys)
def test_the_name_of_a_keys_gate_has_no_spaces_and_names_its_resource(name: str, key: str):
    """J6.2: each key has a gate of its own, made after that of its resource."""
    gate = resource_gate(check_name(name, "resource"), check_key(key, "resource_key"))
    assert " " not in gate
    assert gate != resource_gate(name)
    assert general_gate(gate) == resource_gate(name) == RESOURCE + name
    assert read_lane(gate) == Lane(name, key)


@given(lanes())
def test_gates_are_locked_in_one_order(lane: Lane):
    """J3.4: by name, so that two claimers never wait for each other."""
    assert list(lane.gates) == sorted(lane.gates)
    assert all(gate.startswith((CIRCUIT, RESOURCE)) for gate in lane.gates)


@given(lanes(), targets)
def test_a_job_in_the_lane_of_an_unknown_target_keeps_its_gates(lane: Lane, target: str):
    """J6.3, J6.2: waiting for a node that knows its target leads around no gate."""
    left = read_lane(passed_over_lane(lane.text, target))
    assert left == lane._replace(target=target)
    assert left.gates == lane.gates


@given(targets, st.lists(targets, unique=True, max_size=3))
def test_a_lane_names_the_predicates_that_a_node_must_know(target: str, predicates: list[str]):
    """J8.2, J6.3: all of them, so that no two nodes pass a job to each other for ever."""
    lane = read_lane(passed_over_lane(None, target, predicates))
    assert needed_targets(lane.target or "") == (target, predicates)
    assert all(name in target_named(lane.target or "") for name in (target, *predicates))


def test_a_lane_has_no_more_predicates_than_an_index_can_hold():
    """J8.2, J6.3: the first is what was missing; a node that knows these and not the others passes the job on."""
    predicates = [f"shop.orders.conditions:is_{'long' * 15}_{number}" for number in range(100)]
    lane = passed_over_lane(None, "shop.orders:assess", predicates)
    assert len(lane) < 2_000
    named = needed_targets(read_lane(lane).target or "")[1]
    assert (named, len(named) > 10) == (predicates[: len(named)], True)
