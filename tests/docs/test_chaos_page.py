"""docs/explain/chaos.md names every rule, option and defect of a chaos run, and shows the model's own histories."""

from dataclasses import fields

import pytest

from tests.chaos import broken
from tests.chaos.faults import Options
from tests.chaos.model.cluster_world import ClusterWorld
from tests.chaos.model.explorer import World, explore
from tests.chaos.model.permit_world import PermitWorld
from tests.chaos.oracle import AT_ANY_MOMENT, AT_THE_END
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "explain" / "chaos.md"
TEXT = PAGE.read_text(encoding="utf-8")
UNTOLD = {"settle"}
"""How long the rest may take: for slow machines."""


def test_every_rule_of_the_oracle_is_explained():
    missing = {check.__name__ for check in (*AT_ANY_MOMENT, *AT_THE_END) if f"| `{check.__name__}` |" not in TEXT}
    assert missing == set()


def test_every_option_of_a_run_is_explained():
    names = {option.name for option in fields(Options)} - UNTOLD
    assert {name for name in names if f"`--{name.replace('_', '-')}`" not in TEXT} == set()


def test_every_broken_build_is_explained():
    assert {name for name in broken.STATEMENTS if f"| `{name}`:" not in TEXT} == set()


@pytest.mark.parametrize(
    "world",
    [ClusterWorld("ignored heartbeats"), ClusterWorld("split commit"), PermitWorld("counted permits")],
    ids=["ignored heartbeats", "split commit", "counted permits"],
)
def test_the_histories_are_those_of_the_model(world: World):
    """The longest one, of the missing fence, is asserted literally in tests/chaos/test_model.py."""
    story = explore(world, 8).story
    assert str(story) in [block.body.rstrip("\n") for block in blocks(PAGE)]
