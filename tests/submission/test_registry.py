"""Which functions a process knows and may run, and how it finds them."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.errors import ConfigurationError, SerializationError, TargetNotAllowedError, TargetNotFoundError
from windlass.submission.instances import Instances
from windlass.submission.registry import Registry
from windlass.submission.target import Denied, Known, Resolution, TargetFunction, Unknown

HERE = __name__


def plain(a: int) -> int:
    return a + 1


def other(a: int) -> int:
    return a


async def coroutine(a: int) -> int:
    return a


class Service:
    def method(self, a: int) -> tuple[str, int]:
        return type(self).__name__, a

    @staticmethod
    def static(a: int) -> int:
        return a

    @classmethod
    def made(cls, a: int) -> tuple[str, int]:
        return cls.__name__, a


class Jobs:
    @TargetFunction
    def method(self, a: int) -> tuple[str, int]:
        return type(self).__name__, a

    @TargetFunction
    @staticmethod
    def static_below(a: int) -> int:
        return a

    @staticmethod
    @TargetFunction
    def static_above(a: int) -> int:
        return a

    @TargetFunction
    @classmethod
    def class_below(cls, a: int) -> tuple[str, int]:
        return cls.__name__, a

    @classmethod
    @TargetFunction
    def class_above(cls, a: int) -> tuple[str, int]:
        return cls.__name__, a


class Child(Jobs): ...


def known(resolution: Resolution) -> Known:
    assert isinstance(resolution, Known), resolution
    return resolution


def call(registry: Registry, target: str, *args: Any) -> Any:
    found = known(registry.resolve(target))
    found.spec.bind_check(args, {})
    return found.ready(registry.instances)(*args)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes a module that can be imported for the length of a test."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str) -> None:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        importlib.invalidate_caches()  # the folder may have been read in the same tick of its clock
        # set, then deleted: whatever the test imports is taken out again at its end
        monkeypatch.setitem(sys.modules, name, sys)
        del sys.modules[name]

    return write


def test_a_registered_function_is_known_without_any_prefix():
    """J6.3: functions registered with @app.job are allowed."""
    registry = Registry()
    registry.register(TargetFunction(plain))
    assert registry.targets == (f"{HERE}:plain",)
    assert call(registry, f"{HERE}:plain", 1) == 2
    assert known(registry.resolve(f"{HERE}:plain")).owner is None


def test_an_existing_function_that_is_neither_registered_nor_allowed_is_denied():
    """J6.3: deny by default."""
    resolution = Registry().resolve(f"{HERE}:plain")
    assert isinstance(resolution, Denied)
    assert f"allow=['{HERE}']" in resolution.error
    with pytest.raises(TargetNotAllowedError, match=r"@app\.job"):
        Registry().admit(f"{HERE}:plain")


def test_a_policy_of_the_user_decides_each_time():
    """J6.3: what it has allowed once may be denied later."""

    class Changing:
        answer = True

        def allows(self, target: str) -> bool:
            del target
            return self.answer

    registry = Registry(policy=Changing())
    assert isinstance(registry.resolve(f"{HERE}:plain"), Known)
    Changing.answer = False
    assert isinstance(registry.resolve(f"{HERE}:plain"), Denied)


def test_a_target_that_is_registered_anew_is_resolved_anew():
    """J6.3: although the default policy is not asked again about a target that it has allowed."""
    registry = Registry([HERE])
    name = f"{HERE}:plain"
    assert known(registry.resolve(name)).function is plain
    registry.register(TargetFunction(other, stable_name=name))
    assert known(registry.resolve(name)).function is other


def test_a_name_that_is_not_registered_itself_is_decided_anew_each_time(module: Callable[[str, str], None]):
    """J6.3: here the place of a function that has a name of its own; what stands there may change."""
    source = "def charge(): pass\ncharge = TargetFunction(charge, stable_name='shop.charge')"
    module("windlass_changing", f"from windlass.submission.target import TargetFunction\n{source}")
    registry = Registry()
    registry.register(importlib.import_module("windlass_changing").charge)
    assert isinstance(registry.resolve("windlass_changing:charge"), Known)
    del sys.modules["windlass_changing"]
    assert isinstance(registry.resolve("windlass_changing:charge"), Unknown)


def test_a_module_that_is_not_admitted_is_never_imported(module: Callable[[str, str], None]):
    """J6.3: a stored name alone must not make a worker load code; the target is left to nodes that know it."""
    module("windlass_evil", "raise SystemExit('loaded')")
    for allow in ([], ["windlass_other"]):
        resolution = Registry(allow).resolve("windlass_evil:run")
        assert isinstance(resolution, Unknown)
        assert "not imported" in resolution.error
    assert "windlass_evil" not in sys.modules


def test_an_allowed_module_is_imported_when_it_is_needed(module: Callable[[str, str], None]):
    """J6.3: anything else needs `allow` (module prefixes)."""
    module("windlass_shop.tasks", "def charge(invoice: int) -> str: return f'charged {invoice}'")
    registry = Registry(["windlass_shop"])
    assert call(registry, "windlass_shop.tasks:charge", 42) == "charged 42"


@pytest.mark.parametrize("name", ["system", "Path.unlink", "Path.cwd", "os.system", "OrderedDict.fromkeys"])
def test_functions_that_an_allowed_module_imports_are_not_allowed(module: Callable[[str, str], None], name: str):
    """J6.3: `allow=["shop"]` must not admit os.system because shop says `from os import system`."""
    source = "import os\nfrom os import system\nfrom pathlib import Path\nfrom collections import OrderedDict"
    module("windlass_importing", source)
    assert not isinstance(Registry(["windlass_importing"]).resolve(f"windlass_importing:{name}"), Known)


def test_the_old_name_of_a_moved_function_works_if_its_new_module_is_allowed(module: Callable[[str, str], None]):
    module("windlass_new_home", "def charge() -> str: return 'charged'")
    module("windlass_old_home", "from windlass_new_home import charge")
    assert call(Registry(["windlass_old_home", "windlass_new_home"]), "windlass_old_home:charge") == "charged"
    assert isinstance(Registry(["windlass_old_home"]).resolve("windlass_old_home:charge"), Denied)


def test_an_unknown_target_keeps_the_error_of_its_import(module: Callable[[str, str], None]):
    """J6.3: a target unknown here (rolling deploy) is left to nodes that know it."""
    module("windlass_broken", "import windlass_not_installed")
    registry = Registry(["windlass_broken", HERE])
    broken = registry.resolve("windlass_broken:f")
    assert isinstance(broken, Unknown)
    assert "No module named 'windlass_not_installed'" in broken.error
    assert isinstance(registry.resolve(f"{HERE}:missing"), Unknown)
    with pytest.raises(TargetNotFoundError, match="missing"):
        registry.admit(f"{HERE}:missing")


def test_a_failed_import_is_not_repeated_until_cleared(module: Callable[[str, str], None]):
    """J4.6: resolution is cached, and cleared by app.close()."""
    module("windlass_counting", "import builtins\nbuiltins.windlass_imports += 1\nraise ImportError")
    import builtins

    builtins.windlass_imports = 0  # type: ignore[attr-defined]
    registry = Registry(["windlass_counting"])
    registry.resolve("windlass_counting:f")
    registry.resolve("windlass_counting:f")
    assert builtins.windlass_imports == 1  # type: ignore[attr-defined]
    registry.clear()
    registry.resolve("windlass_counting:f")
    assert builtins.windlass_imports == 2  # type: ignore[attr-defined]
    impatient = Registry(["windlass_counting"], unknown_for=0)
    impatient.resolve("windlass_counting:f")
    impatient.resolve("windlass_counting:f")
    assert builtins.windlass_imports == 4  # type: ignore[attr-defined]
    del builtins.windlass_imports  # type: ignore[attr-defined]


def test_a_target_registered_later_is_known_at_once():
    registry = Registry(["windlass_absent", HERE])
    function = TargetFunction(plain, lambda _: "windlass_absent:plain")
    assert isinstance(registry.resolve("windlass_absent:plain"), Unknown)
    registry.register(function)
    assert call(registry, "windlass_absent:plain", 1) == 2


def test_the_registry_answers_its_own_names_without_an_import(module: Callable[[str, str], None]):
    """`python shop.py` must not build a second app by importing shop."""
    module("windlass_main", "raise SystemExit('loaded a second time')")
    registry = Registry(["windlass_main"])
    registry.register(TargetFunction(plain, lambda _: "windlass_main:plain"))
    assert call(registry, "windlass_main:plain", 1) == 2


def test_a_resolved_target_is_cached_and_the_policy_called_every_time():
    """J6.3: checked at enqueue and again before every run."""

    class Switch:
        on = True

        def allows(self, target: str) -> bool:
            return self.on

    switch = Switch()
    registry = Registry(policy=switch)
    registry.register(TargetFunction(plain))
    first = registry.resolve(f"{HERE}:plain")
    assert registry.resolve(f"{HERE}:plain") is first
    switch.on = False
    assert isinstance(registry.resolve(f"{HERE}:plain"), Denied)


def test_the_same_function_may_be_registered_twice_and_another_may_not():
    registry = Registry()
    registry.register(TargetFunction(plain))
    registry.register(TargetFunction(plain))
    with pytest.raises(ConfigurationError, match=r"two functions are registered as .*plain.*test_registry\.py:\d+"):
        registry.register(TargetFunction(other, lambda _: f"{HERE}:plain"))


def test_a_reloaded_module_replaces_its_functions():
    registry = Registry()
    source = compile("def job(): return 1", "/shop.py", "exec")
    first: dict[str, Any] = {"__name__": "windlass_reloaded"}
    second: dict[str, Any] = {"__name__": "windlass_reloaded"}
    for scope in (first, second):
        exec(source, scope)
        registry.register(TargetFunction(scope["job"]))
    assert known(registry.resolve("windlass_reloaded:job")).function is second["job"]


def test_an_interactive_session_may_redefine_its_functions():
    registry = Registry()
    registry.register(TargetFunction(plain, lambda _: "__main__:job"))
    registry.register(TargetFunction(other, lambda _: "__main__:job"))
    assert call(registry, "__main__:job", 1) == 1


@pytest.mark.parametrize(
    ("name", "result", "owner"),
    [
        ("Service.method", ("Service", 7), Service),
        ("Service.static", 7, None),
        ("Service.made", ("Service", 7), None),
        ("Jobs.method", ("Jobs", 7), Jobs),
        ("Jobs.static_below", 7, None),
        ("Jobs.static_above", 7, None),
        ("Jobs.class_below", ("Jobs", 7), None),
        ("Jobs.class_above", ("Jobs", 7), None),
        ("Child.method", ("Child", 7), Child),
        ("Child.static_below", 7, None),
        ("Child.class_below", ("Child", 7), None),
        ("Child.class_above", ("Child", 7), None),
    ],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_methods_of_every_kind_run(name: str, result: Any, owner: type | None, allowed: bool):
    """J1.1: targets are functions, static and class methods, and instance methods."""
    registry = Registry([HERE] if allowed else [])
    for member in vars(Jobs).values():
        inner = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if isinstance(inner, TargetFunction):
            registry.register(inner)
    target = f"{HERE}:{name}"
    if name.startswith("Service") and not allowed:
        assert isinstance(registry.resolve(target), Denied)
        return
    assert call(registry, target, 7) == result
    assert known(registry.resolve(target)).owner is owner


def test_a_function_is_admitted_only_if_its_name_leads_to_it():
    registry = Registry([HERE])
    assert registry.admit_function(plain).function is plain
    assert registry.admit_function(Service.method).owner is Service
    assert registry.admit_function(Service.made).target == f"{HERE}:Service.made"

    def impostor(a: int) -> int:
        return a

    impostor.__qualname__ = "plain"
    with pytest.raises(SerializationError, match="leads to <function plain"):
        registry.admit_function(impostor)
    with pytest.raises(TargetNotAllowedError):
        Registry().admit_function(plain)


def test_a_custom_resolver_may_use_other_names():
    class Names:
        def describe(self, function: Callable[..., Any], /) -> str:
            return "plain-v1"

        def resolve(self, target: str, /) -> Callable[..., Any]:
            if target != "plain-v1":
                raise TargetNotFoundError(target)
            return plain

    class Everything:
        def allows(self, target: str) -> bool:
            return True

    registry = Registry(policy=Everything(), resolver=Names())
    assert call(registry, "plain-v1", 1) == 2
    assert isinstance(registry.resolve("plain-v2"), Unknown)


def test_clearing_drops_instances():
    """J4.6: resolution of targets, signatures and instances is cached, and cleared by app.close()."""
    registry = Registry()
    assert isinstance(registry.instances, Instances)
    first = registry.instances.resolve(Service)
    assert registry.instances.resolve(Service) is first
    registry.clear()
    assert registry.instances.resolve(Service) is not first
