"""Names of functions: what can be stored, what is refused, and how a name is looked up again."""

import functools
import math
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.errors import ConfigurationError, SerializationError, TargetNotFoundError
from windlass.runtime.global_names import main_module_name
from windlass.submission.modules import PrefixPolicy
from windlass.submission.target import ImportResolver, describe, find_loaded

HERE = __name__


def plain(a: int) -> int:
    return a


async def coroutine(a: int) -> int:
    return a


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@logged
def decorated(a: int) -> int:
    return a


@functools.lru_cache
def cached(a: int) -> int:
    return a


def generator():
    yield 1


async def async_generator():
    yield 1


class Service:
    ready = True

    class Inner:
        def method(self) -> None: ...

    def method(self, a: int) -> int:
        return a

    @staticmethod
    def static(a: int) -> int:
        return a

    @classmethod
    def made(cls, a: int) -> int:
        return a

    def __call__(self) -> None: ...


class Child(Service): ...


no_name = lambda: 1  # noqa: E731 - this is the thing that is refused


def local_function() -> Callable[..., Any]:
    def inner() -> None: ...

    return inner


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (plain, f"{HERE}:plain"),
        (coroutine, f"{HERE}:coroutine"),
        (decorated, f"{HERE}:decorated"),
        (cached, f"{HERE}:cached"),
        (Service.method, f"{HERE}:Service.method"),
        (Service.Inner.method, f"{HERE}:Service.Inner.method"),
        (Service.static, f"{HERE}:Service.static"),
        (Service.made, f"{HERE}:Service.made"),
        (Child.made, f"{HERE}:Child.made"),
        (math.sqrt, "math:sqrt"),
    ],
)
def test_a_function_is_stored_under_module_and_qualname_and_found_again(function: Any, name: str):
    """J1.1: target is `module:qualname`."""
    assert describe(function) == name
    assert ImportResolver().describe(function) == name
    assert ImportResolver().resolve(name) == function


@pytest.mark.parametrize(
    ("value", "what", "instead"),
    [
        (no_name, "is a lambda", "write it with def"),
        (local_function(), "is local to local_function()", "top level of a module"),
        (functools.partial(plain, 1), "is a partial", "app.bind(plain, ...)"),
        (Service, "is a class", "app.bind(Class.method, ...)"),
        (Service(), "has no name", "app.bind(Class.method, ...)"),
        (Service().method, "is bound to one Service", "app.bind(Service.method, ...)"),
        (generator, "is a generator", "return a list"),
        (async_generator, "is a generator", "return a list"),
        ([].append, "belongs to no module", "wrap it"),
        (str.upper, "belongs to no module", "wrap it"),
        (7, "has no name", "enqueue a function"),
    ],
)
def test_a_function_without_a_lasting_name_is_refused_with_advice(value: Any, what: str, instead: str):
    """J1.1: lambdas, closures and local functions are refused, naming the value and what to write instead."""
    with pytest.raises(SerializationError) as caught:
        describe(value)
    assert what in str(caught.value)
    assert instead in str(caught.value)
    assert repr(value)[:12] in str(caught.value)


def test_a_class_method_of_a_local_class_is_refused():
    class Local:
        @classmethod
        def made(cls) -> None: ...

        def method(self) -> None: ...

    for method in (Local.made, Local.method):
        with pytest.raises(SerializationError, match="top level of a module"):
            describe(method)


@pytest.mark.parametrize(
    "name",
    [
        f"{HERE}:missing",
        f"{HERE}:Service.missing",
        f"{HERE}:plain.__globals__",
        f"{HERE}:sys.exit",
        f"{HERE}:",
        HERE,
        "",
        ":",
        "windlass_no_such_module:f",
    ],
)
def test_names_lead_through_a_module_and_its_classes_only(name: str):
    assert find_loaded(name) is None


def test_looking_up_a_loaded_name_runs_no_code(monkeypatch: pytest.MonkeyPatch):
    """J6.3: what is not admitted must not be able to run anything by its name."""
    lazy = types.ModuleType("windlass_lazy")
    lazy.__getattr__ = lambda name: pytest.fail(f"__getattr__({name!r}) ran")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "windlass_lazy", lazy)
    assert find_loaded("windlass_lazy:anything") is None


def test_a_module_that_fails_to_import_is_not_found_and_the_error_names_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "windlass_broken.py").write_text("raise RuntimeError('no settings')")
    (tmp_path / "windlass_exits.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "windlass_empty.py").write_text("value = 7")
    for name, why in [
        ("windlass_broken:f", "RuntimeError: no settings"),
        ("windlass_exits:f", "SystemExit: 3"),
        ("windlass_absent:f", "ModuleNotFoundError: No module named 'windlass_absent'"),
        ("windlass_empty:f", "module 'windlass_empty' has no 'f' here"),
        ("windlass_empty:value", "7 cannot be called"),
        (".relative:f", "TypeError"),
        ("", "no job called"),
        ("billing.charge", "no job called billing.charge is declared here"),
    ]:
        with pytest.raises(TargetNotFoundError) as caught:
            ImportResolver().resolve(name)
        assert why in str(caught.value)


MAIN_FILE = """
import json, sys
from windlass.submission.target import ImportResolver, describe
def charge(): ...
target = describe(charge)
print(json.dumps([target, ImportResolver().resolve(target) is charge, "shop" in sys.modules]))
"""


def run_main(folder: Path, *arguments: str, stdin: str | None = None) -> Any:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "stdin", "target"),
    [
        (["shop.py"], None, "shop:charge"),
        (["-m", "shop"], None, "shop:charge"),
        (["-m", "store.tasks"], None, "store.tasks:charge"),
        (["-c", MAIN_FILE], None, "__main__:charge"),
        (["-"], MAIN_FILE, "__main__:charge"),
    ],
)
def test_the_main_file_is_named_as_others_would_import_it(
    tmp_path: Path, arguments: list[str], stdin: str | None, target: str
):
    """A job of the program's main file is stored under the file's module name, and not imported a second time."""
    (tmp_path / "shop.py").write_text(MAIN_FILE)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "__init__.py").touch()
    (tmp_path / "store" / "tasks.py").write_text(MAIN_FILE)
    assert run_main(tmp_path, *arguments, stdin=stdin) == f'["{target}", true, false]'


def test_a_loaded_module_is_preferred_to_a_main_file_of_the_same_name(monkeypatch: pytest.MonkeyPatch):
    """`windlass worker` is a main file called windlass; `windlass:...` means the package all the same."""
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/usr/bin/windlass", raising=False)
    assert main_module_name() == "windlass"
    found = find_loaded("windlass:__version__")
    assert found is not None


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("shop:charge", True),
        ("shop.tasks:charge", True),
        ("shop.tasks.deep:Service.charge", True),
        ("shopping:charge", False),
        ("my.shop:charge", False),
        ("other:charge", False),
        ("registered:charge", True),
        ("registered:other", False),
        ("shop", True),
        ("", False),
    ],
)
def test_a_prefix_admits_its_module_and_what_lies_below(target: str, allowed: bool):
    """J6.3: deny by default; registered functions, and module prefixes at exact boundaries."""
    assert PrefixPolicy(["shop"], {"registered:charge"}).allows(target) is allowed


@pytest.mark.parametrize("allow", ["shop", ["shop:charge"], ["shop.*"], [""], ["shop."], [7], ["a b"]])
def test_a_prefix_that_names_no_module_is_a_configuration_error(allow: Any):
    with pytest.raises(ConfigurationError, match="allow must"):
        PrefixPolicy(allow, set())
