"""The pytest plugin, as a project of its own meets it: real pytest, started in its folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = """
from windlass import Backoff, Windlass

app = Windlass("sqlite:///shop.db")

@app.job(max_retries=1, backoff=Backoff.fixed(60))
def charge(invoice_id: int) -> str:
    if invoice_id < 0:
        raise ValueError("no such invoice")
    return f"charged {invoice_id}"

@app.job
async def ship(order_id: int) -> str:
    return f"shipped {order_id}"

def place_order(order_id: int) -> None:
    charge.enqueue(order_id)
    ship.using(delay=3600).enqueue(order_id)
"""

TESTS = """
from windlass.testing import advance, assert_enqueued, assert_not_enqueued, drain
from shop import app as the_app, charge, place_order, ship

def test_an_order_is_charged_at_once_and_shipped_later(app):
    assert app is the_app
    place_order(7)
    assert_enqueued(charge, 7, count=1)
    assert drain(app).succeeded == 1
    advance(3600)
    assert drain(app).succeeded == 1

def test_nothing_is_left_of_another_test():
    assert_not_enqueued(charge)
    place_order(8)

def test_nothing_is_left_of_yet_another_test():
    assert_not_enqueued(charge)

def test_jobs_run_at_once(windlass_inline):
    assert charge.enqueue(7).result() == "charged 7"

async def test_the_clock_is_that_of_the_application(windlass_app, windlass_clock):
    before = windlass_clock.now()
    handle = await ship.using(run_at=before).aenqueue(7)
    assert (await windlass_app.aget(handle.id)).created_at == before
"""

UNNAMED = """
[tool.pytest.ini_options]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["."]
"""
NAMED = f'{UNNAMED}windlass_app = "shop:app"\n'


class Project:
    """A folder with a program and its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, configuration: str, tests: str, **files: str) -> tuple[dict[str, int], str]:
        """What pytest counted, and all it printed."""
        (self.folder / "pyproject.toml").write_text(configuration)
        (self.folder / "test_shop.py").write_text(tests)
        for name, text in {"shop": SHOP, **files}.items():
            (self.folder / f"{name}.py").write_text(text)
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "WINDLASS_"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "--strict-config"],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
        counted = {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|errors?)", summary)}
        return counted, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_project_names_its_application_and_every_test_has_its_own_store(project: Project):
    """api.md Testing: also tests that ask for no fixture; the real store is not even made."""
    counted, output = project.run(NAMED, TESTS)
    assert counted == {"passed": 5}, output
    assert not (project.folder / "shop.db").exists()


def test_jobs_of_a_whole_project_may_run_inline(project: Project):
    tests = "from shop import charge\n\ndef test_it():\n    assert charge.enqueue(7).result() == 'charged 7'\n"
    counted, output = project.run(f"{NAMED}windlass_inline = true\n", tests)
    assert counted == {"passed": 1}, output


def test_without_a_name_the_fixture_is_a_new_application(project: Project):
    tests = """
from shop import charge, ship
from windlass.testing import drain

def test_a_function_is_made_a_job_of_it(app):
    handle = app.job(charge.function).enqueue(7)
    assert drain(app).succeeded == 1
    assert handle.result() == "charged 7"

def test_it_is_new_every_time(app):
    assert not app.registry.targets

def test_the_real_application_is_left_alone():
    assert ship.enqueue(7).status() == "PENDING"
"""
    counted, output = project.run(UNNAMED, tests)
    assert counted == {"passed": 3}, output
    assert (project.folder / "shop.db").exists()


def test_fixtures_of_the_project_go_first(project: Project):
    """A web project has an `app` of its own; one may also begin its clock elsewhere."""
    conftest = """
from datetime import UTC, datetime
import pytest
from windlass.testing import VirtualClock

@pytest.fixture
def app():
    return "mine"

@pytest.fixture
def windlass_clock():
    return VirtualClock(datetime(2024, 2, 29, tzinfo=UTC))
"""
    tests = """
from shop import charge

def test_it(app, windlass_app):
    assert app == "mine"
    assert windlass_app.get(charge.enqueue(1).id).created_at.year == 2024
"""
    counted, output = project.run(NAMED, tests, conftest=conftest)
    assert counted == {"passed": 1}, output


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("shpo:app", "No module named 'shpo'"),
        ("shop:charge", "must be a Windlass app"),
        ("broken:app", "ZeroDivisionError"),
    ],
)
def test_a_wrong_name_is_one_error_with_advice(project: Project, name: str, says: str):
    """api.md Testing: before the first test, without a traceback."""
    tests = "def test_it():\n    pass\n\ndef test_another():\n    pass\n"
    counted, output = project.run(NAMED.replace("shop:app", name), tests, broken="1 / 0\n")
    assert counted == {}
    assert output.count(f'windlass_app = "{name}"') == 1
    assert says in output
    assert "Traceback" not in output


def test_projects_that_do_not_use_it_do_not_pay_for_it(project: Project):
    """It is imported at every start of pytest; Windlass is not."""
    tests = """
import sys

def test_it(request):
    assert request.config.pluginmanager.has_plugin("windlass")
    assert not request.config.pluginmanager.has_plugin("windlass-every-test")
    assert "windlass" not in sys.modules
    assert "_windlass_isolated" not in request.fixturenames
"""
    counted, output = project.run(UNNAMED, tests)
    assert counted == {"passed": 1}, output
