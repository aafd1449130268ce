"""docs/reference/rules.md: every rule that is built is stated there, and tests prove it."""

from pathlib import Path

import pytest

from docs.generate_rules import PAGE, ROOT, listed, named_by_tests, parts, stated
from docs.generated_parts import filled

pytestmark = pytest.mark.xdist_group("source")

NOT_BUILT = {
    "J6.4": "encryption is planned; a test proves that asking for it is refused until then",
}
"""Rules that tests name although the page does not state them yet, and why."""


def order(rule: str) -> tuple[str, int, int]:
    section, number = rule[1:].split(".")
    return rule[0], int(section), int(number)


def test_the_page_is_what_the_generator_writes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, parts()) == page, "stale: run `make docs-rules`"


def test_every_rule_is_stated_once_and_in_order():
    assert stated() == sorted(set(stated()), key=order)


def test_every_rule_is_proved_by_a_test():
    named = named_by_tests(ROOT)
    unproved = [rule for rule in stated() if rule not in named]
    assert unproved == [], "no test names them in its docstring"


def test_every_rule_that_a_test_names_is_stated():
    missing = set(named_by_tests(ROOT)) - set(stated()) - set(NOT_BUILT)
    assert missing == set(), "write their statements into docs/reference/rules.md"
    assert set(NOT_BUILT) & set(stated()) == set(), "these are stated now; take them off the list"


def test_tests_are_found_by_the_rules_in_their_docstrings(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shop.py").write_text(
        'def test_a():\n    """J1.1, J2.5: both."""\n'
        'async def test_b():\n    """Also J1.1."""\n'
        'class TestShop:\n    def test_c(self):\n        """J1.10: another."""\n'
        'def helper():\n    """J1.1: no test."""\n'
        "def test_d(): ...\n"
    )
    file = "tests/test_shop.py"
    assert named_by_tests(tmp_path) == {
        "J1.1": {file: ["test_a", "test_b"]},
        "J2.5": {file: ["test_a"]},
        "J1.10": {file: ["TestShop.test_c"]},
    }
    assert "[tests/test_shop.py](../../tests/test_shop.py)" in listed({file: ["test_a"]})


def test_generated_parts_do_not_change_the_rest_of_the_page():
    page = "before\n<!-- generated: J1.1 -->\nold\n<!-- end: J1.1 -->\nafter\n"
    assert filled(page, {"J1.1": "new"}) == "before\n<!-- generated: J1.1 -->\nnew\n<!-- end: J1.1 -->\nafter\n"
