"""The choice of servers that `make test-servers` runs on."""

import pytest

from tests.servers import PLACES, ROOT, main, missing, paths
from windlass.testing.postgres_binaries import installed_versions


def test_every_path_of_server_tests_exists():
    assert [place for place in PLACES if not list(ROOT.glob(place))] == []
    assert "tests/crash" in paths()


def test_a_server_that_is_needed_and_missing_is_named(capsys: pytest.CaptureFixture[str]):
    """J3.2: untested versions are not reported as tested."""
    assert missing([15, 16], [15, 16, 18]) == ""
    assert missing([15, 16, 17], [16, 18]).startswith("PostgreSQL 15, 17 is missing here (found: 16, 18)")
    assert main(["--need", "99"]) == 1
    assert "PostgreSQL 99 is missing here" in capsys.readouterr().err
    assert main(["--only", "99"]) == 1


def test_the_wheel_brings_two_servers():
    assert {16, 18} <= set(installed_versions())
