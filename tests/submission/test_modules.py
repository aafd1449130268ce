"""Projects of several modules: which of them a worker imports, and the error when one is missing."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, until
from windlass import ConfigurationError, TargetNotFoundError, Windlass
from windlass.testing import drain

CORE = """
from windlass import Windlass
app = Windlass({url!r}, include={include!r})
"""
TASKS = """
from {package}.core import app
@app.job
def charge(number: int) -> str:
    return f"charged {{number}}"
"""


class Project:
    """A package of two modules: the application, and its jobs."""

    def __init__(self, folder: Path, url: str) -> None:
        self.name = f"project_{uuid4().hex[:12]}"
        self._folder = folder / self.name
        self._folder.mkdir()
        self._url = url
        self.write("__init__", "")
        self.write("tasks", TASKS.format(package=self.name))

    def write(self, module: str, source: str) -> None:
        (self._folder / f"{module}.py").write_text(source)
        importlib.invalidate_caches()  # the folder may have been read in the same tick of its clock

    def app(self, *include: str) -> Windlass:
        """The application, which includes these modules of the package."""
        names = [f"{self.name}.{module}" for module in include]
        self.write("core", CORE.format(url=self._url, include=names))
        found: Any = __import__(f"{self.name}.core")
        app = found.core.app
        assert isinstance(app, Windlass)
        return app

    @property
    def target(self) -> str:
        return f"{self.name}.tasks:charge"


@pytest.fixture
def project(apps: Apps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    apps()  # migrates
    monkeypatch.syspath_prepend(tmp_path)
    made = Project(tmp_path, apps.url)
    yield made
    core = sys.modules.get(f"{made.name}.core")
    if core is not None:
        core.app.close()
    for name in [name for name in sys.modules if name.startswith(made.name)]:
        del sys.modules[name]


def test_a_worker_imports_what_is_included(project: Project):
    """J10.1: the modules of `include` are imported when a worker starts, and not before."""
    app = project.app("tasks")
    handle = app.enqueue_by_name(project.target, [7])
    assert f"{project.name}.tasks" not in sys.modules
    with app.worker():
        assert handle.result(timeout=LONG) == "charged 7"


def test_a_drain_imports_what_is_included(project: Project):
    """J10.1: the testing kit finds the same jobs as a worker."""
    app = project.app("tasks")
    app.enqueue_by_name(project.target, [7])
    assert drain(app).succeeded == 1


def test_an_included_module_that_does_not_exist_is_named(project: Project):
    """J10.1: the worker does not start, and says which module of `include` there is none of."""
    app = project.app("taks")
    with pytest.raises(ConfigurationError, match=rf"include names '{project.name}\.taks', and there is no module"):
        app.worker().__enter__()


def test_an_included_module_that_fails_is_named_with_its_error_and_line(project: Project):
    """J10.1: what went wrong inside the user's module, and where."""
    project.write("tasks", "\nimport windlass_not_installed\n")
    app = project.app("tasks")
    with pytest.raises(ConfigurationError) as caught:
        drain(app)
    assert f"include names '{project.name}.tasks', which cannot be imported" in str(caught.value)
    assert "No module named 'windlass_not_installed'" in str(caught.value)
    assert "tasks.py:2" in str(caught.value)


def test_a_worker_with_nothing_to_run_names_the_modules_that_declare_jobs(project: Project):
    """J10.1: `core.py` has the application, `tasks.py` the jobs, and it was not imported."""
    app = project.app()
    with pytest.raises(ConfigurationError, match=rf"include=\['{project.name}\.tasks'\]"):
        app.worker().__enter__()
    assert f"{project.name}.tasks" not in sys.modules


def test_an_unknown_target_names_the_module_that_would_help(
    project: Project, apps: Apps, caplog: pytest.LogCaptureFixture
):
    """J10.1, J6.3: in the log of the worker that passed it over, in `explain`, and where it is enqueued."""
    app = apps()
    app.job(jobs.add)
    handle = app.enqueue_by_name(project.target, [7])
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(handle.id)] == ["passed_over"])
        advice = f"Windlass(include=['{project.name}.tasks'])"
        assert (
            f"its module {project.name}.tasks was not imported; have workers import its module: {advice}" in caplog.text
        )
        assert (app.explain(handle.id).code, advice in app.explain(handle.id).message) == ("target_unknown", True)


@pytest.mark.parametrize("option", ["allow", "include"])
def test_a_text_in_place_of_a_list_of_modules_is_refused(option: str):
    """J10.1: `allow` and `include` take lists; letter by letter, a text would name 's', 'h', 'o' and 'p'."""
    with pytest.raises(
        ConfigurationError, match=rf"{option} must be a list of modules, got 'shop'; write {option}=\['shop'\]"
    ):
        Windlass("sqlite://", **{option: "shop"})  # type: ignore[arg-type]
    for wrong in (["shop:charge"], ["shop/tasks.py"], [7], 7, [""]):
        with pytest.raises(ConfigurationError, match=f"{option} must"):
            Windlass("sqlite://", **{option: wrong})  # type: ignore[arg-type]


def test_a_name_without_a_module_is_not_imported(apps: Apps):
    """J1.8: `allow` admits functions of modules; a name like `tests.engine` is no module and is left to others."""
    app = apps(allow=["tests"])
    with pytest.raises(TargetNotFoundError, match=r"no job called tests\.engine is declared here"):
        app.registry.admit("tests.engine")
