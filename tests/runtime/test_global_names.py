"""Names of global objects and of the main module, by which another process finds its own."""

import sys
from types import ModuleType

import pytest

from windlass.runtime.global_names import global_name_of


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("shop_of_this_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_a_global_has_a_name_and_nothing_else_has(module: ModuleType):
    """J1.1: found by identity; equal is not enough."""
    value: list[int] = []
    vars(module)["other"] = []
    assert global_name_of(value) is None
    vars(module)["app"] = value
    assert global_name_of(value) == "shop_of_this_test:app"


def test_a_global_of_the_main_file_is_named_by_the_file(module: ModuleType, monkeypatch: pytest.MonkeyPatch):
    """J1.1: `__main__` is something else in every process; a module that it imports from comes first."""
    value = object()
    main = ModuleType("__main__")
    vars(main)["app"] = value
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert global_name_of(value) is None, "an interactive session is in no file"
    vars(main)["__file__"] = "/somewhere/shop.py"
    assert global_name_of(value) == "shop:app"
    vars(module)["application"] = value
    assert global_name_of(value) == "shop_of_this_test:application"
