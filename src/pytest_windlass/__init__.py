"""The pytest plugin of Windlass: fixtures for programs that enqueue jobs.

pytest imports it at every start, whether a project uses Windlass or not: so it is a package of its own, and imports
Windlass only where a fixture is used.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from windlass import Windlass
    from windlass.testing import VirtualClock

APP = "windlass_app"
INLINE = "windlass_inline"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what `pytest.ini` or `[tool.pytest.ini_options]` may say."""
    parser.addini(APP, 'the Windlass application under test, e.g. "shop:app"; every test gets a store of its own')
    parser.addini(INLINE, "whether its jobs run as soon as they are enqueued", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Isolate every test of a project that names its application; leave other projects alone."""
    if config.getini(APP):
        from pytest_windlass import every_test

        config.pluginmanager.register(every_test, "windlass-every-test")


@pytest.fixture
def windlass_clock() -> VirtualClock:
    """The clock of the test. Override it to begin at another time: `return VirtualClock(datetime(…, tzinfo=UTC))`."""
    from windlass.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def windlass_app(request: pytest.FixtureRequest, windlass_clock: VirtualClock) -> Iterator[Windlass]:
    """The application named by the option `windlass_app`, else a new one, on a store in memory of the test's own."""
    from windlass.testing import inline, isolated

    with ExitStack() as stack:
        named = request.config.getini(APP)
        app = load(named) if named else stack.enter_context(_new())
        stack.enter_context(isolated(app, clock=windlass_clock))
        if request.config.getini(INLINE):
            stack.enter_context(inline(app))
        yield app


@pytest.fixture
def app(windlass_app: Windlass) -> Windlass:
    """The same by a short name; a fixture `app` of yours goes before it."""
    return windlass_app


@pytest.fixture
def windlass_inline(windlass_app: Windlass) -> Iterator[Windlass]:
    """The application, with jobs that run as soon as they are enqueued."""
    from windlass.testing import inline

    with inline(windlass_app):
        yield windlass_app


def _new() -> closing[Windlass]:
    from windlass import Windlass

    return closing(Windlass("sqlite://"))


def load(name: str) -> Windlass:
    """The application of a name; a wrong one is an error of usage that says what to write."""
    from windlass import Windlass

    try:
        found = pkgutil.resolve_name(name)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"  # also what the module itself raises
        raise pytest.UsageError(
            f'{APP} = "{name}" was not found ({what}); it must be module:name, e.g. shop:app, and the module on the '
            'path: pythonpath = ["."] in the configuration of pytest puts the root of the project there'
        ) from error
    if not isinstance(found, Windlass):
        raise pytest.UsageError(f'{APP} = "{name}" must be a Windlass application, it is {found!r}')
    return found
