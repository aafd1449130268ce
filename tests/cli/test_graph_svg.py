"""The picture of a flow as SVG."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from tests.domain.flow_graphs import graph_of_jobs, id_of
from windlass import FlowGraph
from windlass.cli.job.graph_svg import draw

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
FLOWS = (
    "a",
    "a=SUCCEEDED b<a=FAILED c<b=CANCELED",
    "a b1<a/G=SUCCEEDED b2<a/G=RUNNING c<G d<c",
    "a/G=FAILED b/G=PAUSED f!G g<f c<G=CANCELED",
    "a/G b1 b2<b1/G j<G/H c/H k*H l!H",
    "x v<x a<v/G b<v/G c<x/G d<G",
)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("jobs", FLOWS)
def test_every_job_has_a_box_inside_of_the_picture(jobs: str):
    """J8.1, J8.3."""
    graph = graph_of_jobs(*jobs.split())
    root = parsed(draw(graph, NOW))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    assert {(box.findtext(f"{SVG}title") or "").split("\n")[1] for box in boxes} == {str(job.id) for job in graph.nodes}
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height


@pytest.mark.parametrize("jobs", FLOWS)
def test_no_two_boxes_overlap(jobs: str):
    root = parsed(draw(graph_of_jobs(*jobs.split()), NOW))
    groups = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    rects = [rect for group in groups if (rect := group.find(f"{SVG}rect")) is not None]
    places = [tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height")) for rect in rects]
    for number, (x, y, wide, high) in enumerate(places):
        for x2, y2, wide2, high2 in places[:number]:
            assert x >= x2 + wide2 or x2 >= x + wide or y >= y2 + high2 or y2 >= y + high


def test_title_counts_and_labels():
    svg = draw(graph_of_jobs("a/G=FAILED", "b/G", "f!G", "c*G"), NOW)
    assert parsed(svg).findtext(f"{SVG}title") == f"flow {id_of('a')}, 4 jobs: 1 failed, 3 pending"
    assert {"4 jobs", "1 failed", "3 pending", "on failure", "always", "0/2 succeeded, 1 failed"} <= set(texts(svg))


def test_large_groups_and_long_chains_are_folded():
    graph = graph_of_jobs(
        *(f"m{n}/G=SUCCEEDED" for n in range(5000)), "z0<G", *(f"z{n}<z{n - 1}" for n in range(1, 99))
    )
    svg = draw(graph, NOW)
    assert {"… and 4,992 more", "4,992 succeeded", "… and 77 more"} <= set(texts(svg))
    assert len(svg) < 60_000


def test_texts_are_escaped_and_nothing_is_loaded():
    (node,) = graph_of_jobs("a=CANCELED").nodes
    bad = replace(node, target='shop:<script>alert("&")</script>', reason="\x1b]0;x\x07\ufffe<b>")
    svg = draw(FlowGraph(flow_id=node.id, nodes=(bad,), edges=(), groups=()), NOW)
    parsed(svg)
    assert "<script" not in svg
    assert not re.search(r"href|url\((?!#head)|@import|[\x00-\x08\x0b-\x1f\ufffe]", svg)


def test_targets_of_one_name_are_distinguished_by_their_modules():
    one, two = graph_of_jobs("a", "b<a").nodes
    nodes = (replace(one, target="shop:run"), replace(two, target="mail:run"))
    svg = draw(FlowGraph(flow_id=one.id, nodes=nodes, edges=(), groups=()), NOW)
    assert {"shop:run", "mail:run"} <= set(texts(svg))
