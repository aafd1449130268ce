"""Classes of errors by name."""

import pytest

from windlass.runtime.error_classes import CLASSES, ErrorClasses, class_name, classes_of

OS, KEY, LOOKUP = (class_name(kind) for kind in (OSError, KeyError, LookupError))
GROUP = ExceptionGroup("several", [OSError(), ExceptionGroup("inner", [KeyError(), KeyError()])])


@pytest.mark.parametrize(
    ("error", "names", "any_in", "all_in"),
    [
        (KeyError(), {KEY}, True, True),
        (KeyError(), {LOOKUP}, True, True),
        (KeyError(), {OS}, False, False),
        (KeyError(), set(), False, False),
        (GROUP, {OS}, True, False),
        (GROUP, {LOOKUP}, True, False),
        (GROUP, {OS, LOOKUP}, True, True),
        (GROUP, {class_name(ExceptionGroup)}, True, True),
    ],
)
def test_an_error_is_of_a_class_by_its_bases_and_a_group_by_its_members(
    error: BaseException, names: set[str], any_in: bool, all_in: bool
):
    """J5.1: one member is enough to give up, all are needed to retry."""
    classes = classes_of(error)
    assert (classes.any_in(names), classes.all_in(names)) == (any_in, all_in)


def test_the_classes_of_an_error_from_another_process_are_those_it_had_there():
    """J5.1: its class may be a stand-in here."""
    error = ValueError()
    there = ErrorClasses(frozenset({"shop:OrderError"}))
    setattr(error, CLASSES, there)
    assert classes_of(error) is there


def test_groups_may_be_nested_deeper_than_the_stack():
    group: Exception = KeyError()
    for _ in range(5_000):
        group = ExceptionGroup("one more", [group])
    assert classes_of(group).any_in({KEY})
