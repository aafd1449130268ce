"""Values of items as stored texts, and their fingerprints."""

import hashlib
from dataclasses import dataclass

from windlass.pipelines.item_values import canonical, fingerprint


@dataclass
class Line:
    price: float
    name: str


def test_fingerprints_hash_canonical_json():
    """P5.2, api.md: sorted keys, no spaces, UTF-8."""
    text = '{"name":"Tee für zwei","price":2.5}'
    assert canonical({"price": 2.5, "name": "Tee für zwei"}) == text
    assert fingerprint(Line(2.5, "Tee für zwei")) == hashlib.sha256(text.encode()).hexdigest()
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})


def test_values_that_are_no_json_have_a_fingerprint_too():
    """P5.2: a reject is never lost for want of one."""
    assert fingerprint(object) == fingerprint(object)
    assert canonical({1, 2}) == "[1,2]"


def test_equal_sets_have_equal_fingerprints():
    """P3.2, P7.2: in whatever order they were filled, and whichever process hashes their texts."""
    assert {8, 16, 0} == {0, 16, 8}
    assert canonical({8, 16, 0}) == canonical({0, 16, 8}) == "[0,8,16]"
    assert canonical({"tags": {"b", "a", "c"}}) == '{"tags":["a","b","c"]}'
