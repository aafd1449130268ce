"""docs/operate/deployment.md: its commands exist, its files parse, and no worker is killed while draining."""

import configparser
import importlib
import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from tests.docs.pages import ROOT, blocks, prose
from windlass import Settings
from windlass.cli.main import main
from windlass.maintenance import statistics_duty

PAGE = ROOT / "docs" / "operate" / "deployment.md"
SIGNING_OFF = 30
"""Seconds that a worker may need after its drain."""


def block(info: str) -> str:
    (found,) = [each.body for each in blocks(PAGE) if each.info == info]
    return found


def check_command(words: list[str]) -> None:
    """As the command line itself would: unknown commands, options and values are errors."""
    group: click.Command | None = main
    rest = list(words)
    while isinstance(group, click.Group):
        group = group.get_command(click.Context(group), rest.pop(0))
    assert group is not None, f"there is no command {words}"
    group.make_context(words[0], rest).close()


def settings_of_the_page(folder: Path) -> Settings:
    file = folder / "windlass.toml"
    file.write_text(block("toml"))
    return Settings.load(file, environ={})


@pytest.fixture
def drain_timeout(tmp_path: Path) -> float:
    return settings_of_the_page(tmp_path).node.drain_timeout


def test_the_settings_file_is_one(tmp_path: Path):
    settings = settings_of_the_page(tmp_path)
    assert (settings.node.concurrency, settings.node.drain_timeout, settings.jobs.retention) == (50, 60, 7 * 86_400)


def test_the_systemd_unit_starts_what_exists_and_waits_for_the_drain(drain_timeout: float):
    """J7.6."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(block("ini"))
    service = unit["Service"]
    for key in ("ExecStartPre", "ExecStart"):
        program, *words = shlex.split(service[key])
        assert program.endswith("/windlass")
        check_command(words)
    assert float(service["TimeoutStopSec"]) >= drain_timeout + SIGNING_OFF
    assert (service["KillMode"], service["SuccessExitStatus"], service["Restart"]) == ("mixed", "3", "on-failure")


def test_the_container_gets_the_signal_itself():
    """J7.6: the exec form."""
    lines = dict(line.split(" ", 1) for line in block("dockerfile").splitlines() if line)
    assert json.loads(lines["ENTRYPOINT"]) == ["windlass"]
    check_command(json.loads(lines["CMD"]))
    assert lines["STOPSIGNAL"] == "SIGTERM"


def test_the_manifests_run_what_exists_and_wait_for_the_drain(drain_timeout: float):
    """J7.6: the grace period, and settings by variable."""
    yaml: Any = importlib.import_module("yaml")
    migrate, worker = yaml.safe_load_all(block("yaml"))
    check_command(migrate["spec"]["template"]["spec"]["containers"][0]["args"])
    pod = worker["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    check_command(container["args"])
    program, *probe = container["readinessProbe"]["exec"]["command"]
    assert program == "windlass"
    check_command(probe)
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert Settings.load(environ=variables).node.drain_timeout == drain_timeout
    assert pod["terminationGracePeriodSeconds"] >= drain_timeout + SIGNING_OFF
    labels = worker["spec"]["template"]["metadata"]["labels"]
    assert worker["spec"]["selector"]["matchLabels"] == labels


def test_the_documented_defaults_are_the_defaults():
    """J7.5, J7.6."""
    text, defaults = prose(PAGE), Settings()
    assert f"`node.drain_timeout` (**{defaults.node.drain_timeout:g} s**)" in text
    assert f"every {defaults.node.recovery_interval:g} s (`node.recovery_interval`)" in text
    assert f"every {defaults.node.sweep_interval:g} s (`node.sweep_interval`)" in text
    assert f"every {defaults.jobs.archive_interval:g} s (`jobs.archive_interval`)" in text
    assert f"every {defaults.node.statistics_interval:g} s (`node.statistics_interval`)" in text
    assert f"batches of up to {statistics_duty.BATCH:,};" in text
    assert f"deleted after {statistics_duty.KEPT_MINUTES // 1440} days" in text
    lost_after = defaults.node.heartbeat_interval * defaults.node.missed_heartbeats
    assert f"at the latest when the lease expires ({lost_after:g} s)" in text
    assert lost_after + 2 * defaults.node.recovery_interval <= 20
    assert "other nodes notice within 20 s" in text
