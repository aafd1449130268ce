"""Child processes for every test that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crashing import Stage, stage_on
from tests.support.programs import Programs


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    """Starts programs; bodies that run in this process find their files too."""
    with Programs(tmp_path) as started:
        for name, value in started.environ.items():
            monkeypatch.setenv(name, value)
        yield started


@pytest.fixture
def stage(store_url: str, programs: Programs) -> Iterator[Stage]:
    """An empty store of each kind in turn, with workers that can be made to die."""
    with stage_on(store_url, programs) as ready:
        yield ready
