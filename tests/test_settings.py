"""Settings: defaults, checks where a value is given, and the order of sources."""

import ast
import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import assert_type

import click
import msgspec
import pytest

from windlass import CircuitProfile, Windlass
from windlass.cli.main import main
from windlass.errors import ConfigurationError
from windlass.settings import (
    SECTIONS,
    CircuitsSettings,
    DeadLettersSettings,
    JobsSettings,
    NodeSettings,
    PollerSettings,
    Settings,
)

FIELDS = [(section, name) for section, kind in SECTIONS.items() for name in kind.options()]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a current folder of its own, so that no file of the project is picked up."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(**variables: str) -> Settings:
    return Settings.load(environ=variables)


def test_defaults_are_those_of_the_specification():
    settings = Settings()
    assert dataclasses.asdict(settings.poller) == {
        "batch_size": 1000, "burst_delay": 0.5, "min_delay": 2, "max_delay": 30, "deep_idle_delay": 60,
        "deep_idle_after": 300,
    }  # fmt: skip
    assert dataclasses.asdict(settings.node) == {
        "heartbeat_interval": 5, "missed_heartbeats": 3, "crash_budget": 3, "drain_timeout": 30,
        "loop_block_warning": 1,
        "recovery_interval": 2, "sweep_interval": 10, "statistics_interval": 10, "concurrency": 100,
        "unknown_target_after": 86_400, "process_jobs": 1000, "process_memory_bytes": None,
    }  # fmt: skip
    assert dataclasses.asdict(settings.jobs) == {
        "boost_interval": 900, "timeout": 1800, "max_payload_bytes": 102_400, "max_result_bytes": 65_536,
        "retention": 2_592_000, "archive_interval": 60, "commit": "group", "redact_emails": True,
        "max_error_length": 2000, "keep_logs": "job", "max_log_lines": 1000,
    }  # fmt: skip
    assert dataclasses.asdict(settings.dead_letters) == {
        "retention": 90 * 86_400, "purge_cron": "0 2 * * *", "alert_window": 3600,
    }  # fmt: skip
    assert dataclasses.asdict(settings.circuits) == {"profile": CircuitProfile.DEFAULT, "refresh": 1}


def test_a_cron_expression_is_kept_in_one_form_and_may_be_absent():
    assert DeadLettersSettings(purge_cron="0  2 * *  *").purge_cron == "0 2 * * *"
    assert load(WINDLASS_DEAD_LETTERS__PURGE_CRON="none").dead_letters.purge_cron is None
    assert load(WINDLASS_DEAD_LETTERS__RETENTION="86400").dead_letters.retention == 86_400


def test_loading_without_any_source_gives_the_defaults():
    assert Settings.load(environ={}) == Settings()


def test_every_default_is_a_value_the_field_itself_accepts():
    for section, name in FIELDS:
        option = SECTIONS[section].options()[name]
        assert option.accept(option.default) == option.default


def test_a_duration_is_given_as_seconds_or_timedelta_and_read_as_seconds():
    settings = PollerSettings(burst_delay=timedelta(milliseconds=250), max_delay=40)
    assert_type(settings.burst_delay, float)
    assert (settings.burst_delay, settings.max_delay) == (0.25, 40.0)
    assert_type(JobsSettings(timeout=None).timeout, float | None)
    assert JobsSettings(timeout=None).timeout is None


def test_settings_cannot_be_changed_but_copied_with_a_change():
    settings = PollerSettings(batch_size=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.batch_size = 8  # type: ignore[misc]
    assert dataclasses.replace(settings, min_delay=1) == PollerSettings(batch_size=7, min_delay=1)


def test_settings_survive_copy_pickle_and_hash():
    settings = Settings(jobs=JobsSettings(timeout=None))
    assert copy.deepcopy(settings) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(Settings(jobs=JobsSettings(timeout=None)))
    assert "timeout=None" in repr(settings)


@pytest.mark.parametrize(
    ("make", "named", "came"),
    [
        (lambda: PollerSettings(batch_size=0), "poller.batch_size", "0"),
        (lambda: PollerSettings(batch_size=True), "poller.batch_size", "True"),
        (lambda: PollerSettings(batch_size="8"), "poller.batch_size", "'8'"),  # type: ignore[arg-type]
        (lambda: PollerSettings(batch_size=2**31), "poller.batch_size", str(2**31)),
        (lambda: PollerSettings(burst_delay=0), "poller.burst_delay", "0"),
        (lambda: PollerSettings(burst_delay=-1), "poller.burst_delay", "-1"),
        (lambda: PollerSettings(burst_delay=math.nan), "poller.burst_delay", "nan"),
        (lambda: PollerSettings(burst_delay=math.inf), "poller.burst_delay", "inf"),
        (lambda: PollerSettings(burst_delay="1"), "poller.burst_delay", "'1'"),  # type: ignore[arg-type]
        (lambda: PollerSettings(burst_delay=True), "poller.burst_delay", "True"),
        (lambda: PollerSettings(min_delay=31), "poller.min_delay", "31"),
        (lambda: NodeSettings(missed_heartbeats=0), "node.missed_heartbeats", "0"),
        (lambda: NodeSettings(drain_timeout=-1), "node.drain_timeout", "-1"),
        (lambda: NodeSettings(concurrency=1.5), "node.concurrency", "1.5"),  # type: ignore[arg-type]
        (lambda: JobsSettings(timeout=0), "jobs.timeout", "0"),
        (lambda: JobsSettings(commit="both"), "jobs.commit", "'both'"),  # type: ignore[arg-type]
        (lambda: JobsSettings(redact_emails=1), "jobs.redact_emails", "1"),  # type: ignore[arg-type]
        (lambda: JobsSettings(max_error_length=99), "jobs.max_error_length", "99"),
        (lambda: DeadLettersSettings(purge_cron="at night"), "dead_letters.purge_cron", "'at night'"),
        (lambda: DeadLettersSettings(purge_cron=2), "dead_letters.purge_cron", "2"),  # type: ignore[arg-type]
        (lambda: DeadLettersSettings(retention=0), "dead_letters.retention", "0"),
        (lambda: Settings(poller={"batch_size": 1}), "settings.poller", "batch_size"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_value_is_refused_with_its_name_what_came_and_what_is_allowed(make, named, came):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert named in str(caught.value)
    assert "must be" in str(caught.value)
    assert f"got {came}" in str(caught.value) or came in str(caught.value)


def test_zero_is_allowed_where_it_has_a_meaning():
    jobs = JobsSettings(boost_interval=0, retention=0)
    node = NodeSettings(drain_timeout=0, crash_budget=0, unknown_target_after=0)
    assert jobs.boost_interval == node.drain_timeout == node.crash_budget == 0


def test_each_source_wins_over_the_one_before_it(empty_folder: Path):
    (empty_folder / "windlass.toml").write_text("[poller]\nbatch_size = 1\nmin_delay = 1\nmax_delay = 11\n")
    settings = Settings.load(
        environ={"WINDLASS_POLLER__BATCH_SIZE": "2", "WINDLASS_POLLER__MIN_DELAY": "2.5"},
        overrides={"poller": {"batch_size": 3}},
    )
    poller = settings.poller
    assert (poller.batch_size, poller.min_delay, poller.max_delay, poller.burst_delay) == (3, 2.5, 11, 0.5)


def test_an_argument_equal_to_the_default_still_wins_and_an_unset_one_does_not(empty_folder: Path):
    (empty_folder / "windlass.toml").write_text("[poller]\nbatch_size = 9\n[jobs]\ntimeout = 5\n")
    explicit = Settings.load(environ={}, overrides={"poller": {"batch_size": 500}, "jobs": {"timeout": None}})
    assert explicit.poller.batch_size == 500
    assert explicit.jobs.timeout is None
    unset = Settings.load(environ={}, overrides={"poller": {"batch_size": msgspec.UNSET}, "jobs": {}})
    assert unset.poller.batch_size == 9
    assert unset.jobs.timeout == 5


def test_settings_given_in_code_override_file_and_environment(empty_folder: Path, monkeypatch: pytest.MonkeyPatch):
    """api.md Settings: field by field, also where the value is that of the default."""
    (empty_folder / "windlass.toml").write_text("[node]\nconcurrency = 5\ncrash_budget = 6\nmissed_heartbeats = 7\n")
    monkeypatch.setenv("WINDLASS_NODE__CRASH_BUDGET", "8")
    monkeypatch.setenv("WINDLASS_JOBS__TIMEOUT", "9")
    settings = Settings(node=NodeSettings(concurrency=100), jobs=JobsSettings(max_log_lines=10))
    app = Windlass("sqlite://", settings=settings)
    node, jobs = app.settings.node, app.settings.jobs
    assert (node.concurrency, node.crash_budget, node.missed_heartbeats, node.drain_timeout) == (100, 8, 7, 30)
    assert (jobs.max_log_lines, jobs.timeout) == (10, 9)
    assert Windlass("sqlite://").settings.node.concurrency == 5


def test_loaded_settings_are_not_merged_with_other_sources_again(empty_folder: Path, monkeypatch: pytest.MonkeyPatch):
    """api.md Settings: a program that loads another file, or ignores the environment, has decided."""
    (empty_folder / "other.toml").write_text("[node]\nconcurrency = 5\n")
    loaded = Settings.load("other.toml", environ={})
    monkeypatch.setenv("WINDLASS_NODE__CONCURRENCY", "6")
    monkeypatch.setenv("WINDLASS_JOBS__TIMEOUT", "9")
    assert Windlass("sqlite://", settings=loaded).settings == loaded
    changed = dataclasses.replace(loaded, jobs=JobsSettings(max_log_lines=10))
    assert Windlass("sqlite://", settings=changed).settings.node.concurrency == 5


@pytest.mark.parametrize("wrong", [{}, {"node": {"concurrency": 5}}, NodeSettings(), 5])
def test_settings_that_are_none_are_refused(wrong):
    """api.md Errors: what was expected, what came, what to do."""
    with pytest.raises(ConfigurationError, match=r"settings must be a Settings, e\.g\. Settings\(node="):
        Windlass("sqlite://", settings=wrong)


def test_a_circuit_profile_is_given_by_name_or_as_it_is():
    """api.md: circuits.profile."""
    assert CircuitsSettings(profile=CircuitProfile.FAST).profile is CircuitProfile.FAST
    assert CircuitsSettings(profile="external_api").profile is CircuitProfile.EXTERNAL_API
    assert load(WINDLASS_CIRCUITS__PROFILE="Critical").circuits.profile is CircuitProfile.CRITICAL
    with pytest.raises(ConfigurationError, match=r"circuits\.profile must be .*default, fast.* got 'quick'"):
        load(WINDLASS_CIRCUITS__PROFILE="quick")


def test_the_table_of_pyproject_is_read_when_there_is_no_windlass_toml(empty_folder: Path):
    (empty_folder / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.windlass.node]\nconcurrency = 7\n')
    assert Settings.load(environ={}).node.concurrency == 7
    (empty_folder / "windlass.toml").write_text("[node]\nmissed_heartbeats = 4\n")
    node = Settings.load(environ={}).node
    assert (node.concurrency, node.missed_heartbeats) == (100, 4)


def test_a_pyproject_without_our_table_changes_nothing(empty_folder: Path):
    (empty_folder / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.ruff]\nline-length = 120\n')
    assert Settings.load(environ={}) == Settings()


def test_a_named_file_is_read_from_wherever_it_is(tmp_path: Path):
    file = tmp_path / "deploy" / "production.toml"
    file.parent.mkdir()
    file.write_text('[jobs]\ncommit = "each"\ntimeout = "none"\nredact_emails = false\nretention = "86400"\n')
    jobs = Settings.load(file, environ={}).jobs
    assert (jobs.commit, jobs.timeout, jobs.redact_emails, jobs.retention) == ("each", None, False, 86_400)


def test_variables_are_converted_to_the_type_of_their_field():
    settings = load(
        WINDLASS_POLLER__BATCH_SIZE="12",
        WINDLASS_POLLER__BURST_DELAY="0.25",
        WINDLASS_JOBS__REDACT_EMAILS="false",
        WINDLASS_JOBS__COMMIT="each",
        WINDLASS_JOBS__TIMEOUT="None",
    )
    assert (settings.poller.batch_size, settings.poller.burst_delay) == (12, 0.25)
    assert (settings.jobs.redact_emails, settings.jobs.commit, settings.jobs.timeout) == (False, "each", None)


def test_variables_without_a_double_underscore_are_no_settings():
    assert load(WINDLASS_URL="sqlite:///x.db", WINDLASS_APP="shop:app", OTHER__THING="1") == Settings()


@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        ({"WINDLASS_POLLER__BATCH_SIZ": "1"}, ["poller.batch_siz", "did you mean batch_size?"]),
        ({"WINDLASS_POLER__BATCH_SIZE": "1"}, ["section 'poler'", "did you mean poller?"]),
        ({"WINDLASS_POLLER__BATCH_SIZE": "many"}, ["poller.batch_size must be a whole number", "got 'many'"]),
        ({"WINDLASS_POLLER__BATCH_SIZE": ""}, ["poller.batch_size", "got ''"]),
        ({"WINDLASS_POLLER__BATCH_SIZE": "0"}, ["poller.batch_size", "from 1 to", "got '0'"]),
        ({"WINDLASS_POLLER__BURST_DELAY": "nan"}, ["poller.burst_delay", "got 'nan'"]),
        ({"WINDLASS_POLLER__BURST_DELAY": "none"}, ["poller.burst_delay", "got 'none'"]),
        ({"WINDLASS_JOBS__TIMEOUT": "0"}, ["jobs.timeout", '"none" in files']),
        ({"WINDLASS_JOBS__COMMIT": "all"}, ["jobs.commit", '"group" or "each"', "got 'all'"]),
        ({"WINDLASS_JOBS__": "all"}, ["unknown setting jobs."]),
    ],
)
def test_a_wrong_variable_is_refused_by_name_with_a_suggestion(variables: dict[str, str], parts: list[str]):
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ=variables)
    message = str(caught.value)
    assert [part for part in [*parts, *variables] if part not in message] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[poller]\nbatch-size = 1\n", ["poller.batch-size", "did you mean batch_size?", "windlass.toml"]),
        ("batch_size = 1\n", ["'batch_size'", "did you mean poller.batch_size?", "windlass.toml"]),
        ("[polling]\n", ["section 'polling'", "there are: poller, node, jobs", "windlass.toml"]),
        ("[zzz]\nx = 1\n", ["section 'zzz'", "there are:"]),
        ("poller = 3\n", ["[poller] must be a table", "windlass.toml"]),
        ("[poller]\nbatch_size = [1]\n", ["poller.batch_size", "got [1]", "windlass.toml"]),
        ("[poller]\nbatch_size = 1.5\n", ["poller.batch_size", "got 1.5"]),
        ("[poller\n", ["windlass.toml is not valid TOML"]),
    ],
)
def test_a_wrong_file_is_refused_by_name_with_a_suggestion(empty_folder: Path, text: str, parts: list[str]):
    (empty_folder / "windlass.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ={})
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize("table", ["[tool]\nwindlass = 3\n", "[tool.windlass.nodes]\n"])
def test_a_wrong_table_in_pyproject_is_refused(empty_folder: Path, table: str):
    (empty_folder / "pyproject.toml").write_text(table)
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml"):
        Settings.load(environ={})


def test_a_named_file_that_is_missing_or_not_text_is_an_error(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml cannot be read"):
        Settings.load(tmp_path / "nowhere.toml", environ={})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        Settings.load(tmp_path / "binary.toml", environ={})


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"poller": {"batchsize": 1}}, "did you mean batch_size?"),
        ({"jobbs": {}}, "did you mean jobs?"),
        ({"poller": {"batch_size": "8"}}, "poller.batch_size must be"),
        ({"poller": 8}, "must map fields to values"),
    ],
)
def test_wrong_arguments_are_refused(overrides, part: str):
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ={}, overrides=overrides)
    assert part in str(caught.value)


@pytest.mark.parametrize("kind", [*SECTIONS.values(), Settings])
def test_every_field_is_followed_by_a_line_that_explains_it(kind: type):
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    pairs = zip(definition.body, definition.body[1:], strict=False)
    undocumented = {
        ast.unparse(node.target)
        for node, following in pairs
        if isinstance(node, ast.AnnAssign) and not (isinstance(following, ast.Expr) and ast.unparse(following.value))
    }
    assert undocumented - {"section"} == set()


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("WINDLASS_NODE_CONCURRENCY", "WINDLASS_NODE__CONCURRENCY"),
        ("WINDLASS_NODE_CONCURENCY", "WINDLASS_NODE__CONCURRENCY"),
        ("WINDLASS_DEAD_LETTERS_RETENTION", "WINDLASS_DEAD_LETTERS__RETENTION"),
        ("WINDLASS_JOBS_TIMEOUT", "WINDLASS_JOBS__TIMEOUT"),
    ],
)
def test_a_variable_with_one_underscore_is_refused_with_the_right_name(variable: str, meant: str):
    """J1.10: it would be ignored otherwise."""
    with pytest.raises(ConfigurationError, match=rf"{variable} is not a setting; did you mean {meant}, with two"):
        load(**{variable: "3"})


def test_the_variables_of_commands_are_not_taken_for_settings():
    """J1.10: every option of every command has one, with single underscores."""
    variables = set(command_variables(main, click.Context(main, info_name="windlass"), "WINDLASS"))
    assert {"WINDLASS_WORKER_CONCURRENCY", "WINDLASS_NODE_DRAIN_WAIT", "WINDLASS_APP"} <= variables
    assert load(**dict.fromkeys(variables, "3")) == Settings()


def command_variables(command: click.Command, context: click.Context, prefix: str) -> Iterator[str]:
    for parameter in command.params:
        given = parameter.envvar or f"{prefix}_{parameter.name}".upper()
        yield from ([given] if isinstance(given, str) else given)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from command_variables(child, context, f"{prefix}_{name}".upper().replace("-", "_"))
