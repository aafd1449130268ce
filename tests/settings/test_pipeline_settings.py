"""Settings of pipelines: an inner section, in files, variables and code."""

import dataclasses
import pickle
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from windlass import PipelinesSettings, Settings, StepDefaults, Windlass
from windlass.domain.step_options import STEP_OPTION_NAMES, StepOptions
from windlass.errors import ConfigurationError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a current folder of its own, so that no file of the project is picked up."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def defaults(**variables: str) -> StepDefaults:
    return Settings.load(environ=variables).pipelines.defaults


def test_the_defaults_are_those_of_the_specification():
    """P1.3."""
    given = dataclasses.asdict(Settings().pipelines)
    assert given.pop("defaults") == dataclasses.asdict(StepOptions())
    assert given == {
        "production": True, "retention": 30 * 86_400, "max_value_bytes": 262_144, "max_circuit_deferral": 86_400,
        "reject_retention": 90 * 86_400, "include_payload": False, "reject_sink": "store", "purge_cron": "0 2 * * *",
        "token_keys": (),
        "dlq_provider": "store", "dlq_url": None,
    }  # fmt: skip


def test_the_defaults_of_steps_have_the_fields_of_their_options():
    """P1.3."""
    assert tuple(StepDefaults.options()) == STEP_OPTION_NAMES
    assert StepDefaults(retry_wait=timedelta(seconds=2)).step_options() == StepOptions(retry_wait=2)


def test_an_inner_section_is_a_table_in_a_table(empty_folder: Path):
    """P1.3: `pipelines.defaults.…`."""
    (empty_folder / "pyproject.toml").write_text("[tool.windlass.pipelines.defaults]\nretry_limit = 2\n")
    assert Settings.load(environ={}).pipelines == PipelinesSettings(defaults=StepDefaults(retry_limit=2))
    (empty_folder / "windlass.toml").write_text(
        '[pipelines]\nproduction = false\n[pipelines.defaults]\nbuffer = 3\ntimeout = "none"\ncircuit = "stripe"\n'
    )
    pipelines = Settings.load(environ={}).pipelines
    assert (pipelines.production, pipelines.defaults.buffer, pipelines.defaults.retry_limit) == (False, 3, 5)
    assert (pipelines.defaults.timeout, pipelines.defaults.circuit) == (None, "stripe")


def test_a_variable_of_an_inner_section_has_one_part_more():
    """P1.3."""
    given = defaults(
        WINDLASS_PIPELINES__DEFAULTS__RETRY_LIMIT="2",
        WINDLASS_PIPELINES__DEFAULTS__JITTER="false",
        WINDLASS_PIPELINES__DEFAULTS__RESOURCE="none",
    )
    assert (given.retry_limit, given.jitter, given.resource) == (2, False, None)
    assert Settings.load(environ={"WINDLASS_PIPELINES__RETENTION": "60"}).pipelines.retention == 60


def test_each_source_wins_over_the_one_before_it_field_by_field(empty_folder: Path, monkeypatch: pytest.MonkeyPatch):
    """P1.3."""
    (empty_folder / "windlass.toml").write_text("[pipelines.defaults]\nretry_limit = 1\nbuffer = 1\nconcurrency = 1\n")
    monkeypatch.setenv("WINDLASS_PIPELINES__DEFAULTS__BUFFER", "2")
    monkeypatch.setenv("WINDLASS_PIPELINES__DEFAULTS__CONCURRENCY", "2")
    given = Settings(pipelines=PipelinesSettings(defaults=StepDefaults(concurrency=128)))
    app = Windlass("sqlite://", settings=given)
    found = app.settings.pipelines.defaults
    assert (found.retry_limit, found.buffer, found.concurrency, found.retry_wait) == (1, 2, 128, 1)
    loaded = Settings.load(environ={})
    assert Windlass("sqlite://", settings=loaded).settings == loaded


def test_arguments_name_an_inner_section_by_mapping_or_object():
    """P1.3."""
    for given in ({"retry_limit": 2, "buffer": msgspec.UNSET}, StepDefaults(retry_limit=2)):
        assert (
            Settings.load(environ={}, overrides={"pipelines": {"defaults": given}}).pipelines.defaults.retry_limit == 2
        )
    assert Settings.load(environ={}, overrides={"pipelines": {"defaults": msgspec.UNSET}}) == Settings()
    with pytest.raises(ConfigurationError, match=r"overrides\['pipelines.defaults'\] must map fields to values, got 3"):
        Settings.load(environ={}, overrides={"pipelines": {"defaults": 3}})


@pytest.mark.parametrize(
    ("variable", "value", "part"),
    [
        ("WINDLASS_PIPELINES__DEFAULTS__RETRY_LIMIT", "-1", "pipelines.defaults.retry_limit must be a whole number"),
        ("WINDLASS_PIPELINES__DEFAULTS__RETRY_LIMITS", "1", "pipelines.defaults.retry_limits (from the variable"),
        ("WINDLASS_PIPELINES__DEFAULTS__RETRY_LIMITS", "1", "did you mean retry_limit?"),
        ("WINDLASS_PIPELINES__DEFAULTS_RETRY_LIMIT", "1", "did you mean defaults.retry_limit?"),
        ("WINDLASS_PIPELINES_DEFAULTS_RETRY_LIMIT", "1", "did you mean WINDLASS_PIPELINES__DEFAULTS__RETRY_LIMIT"),
        ("WINDLASS_PIPELINES__DEFAULTS__CIRCUIT", "a b", "pipelines.defaults.circuit must be a name"),
        ("WINDLASS_PIPELINES__DEFAULTS", "1", "[pipelines.defaults] has: retry_limit"),
        ("WINDLASS_PIPELINES__MAX_VALUE_BYTES", "0", "pipelines.max_value_bytes must be a whole number from 1"),
    ],
)
def test_a_wrong_variable_is_refused_by_name_with_a_suggestion(variable: str, value: str, part: str):
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ={variable: value})
    assert part in str(caught.value)
    assert variable in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[pipelines]\ndefaults = 3\n", "[pipelines.defaults] must be a table of settings, got 3"),
        ("[pipelines.defauts]\nbuffer = 3\n", "did you mean defaults?"),
        ("[pipelines.defaults]\nbufer = 3\n", "did you mean buffer?"),
        ("retry_limit = 3\n", "did you mean pipelines.defaults.retry_limit?"),
        ("timeout = 3\n", "did you mean jobs.timeout?"),
    ],
)
def test_a_wrong_file_is_refused_by_name_with_a_suggestion(empty_folder: Path, text: str, part: str):
    (empty_folder / "windlass.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ={})
    assert part in str(caught.value)
    assert "windlass.toml" in str(caught.value)


@pytest.mark.parametrize("wrong", [StepOptions(retry_limit=2), {"retry_limit": 2}, None])
def test_an_inner_section_of_another_class_is_refused(wrong):
    with pytest.raises(
        ConfigurationError, match=r"pipelines\.defaults must be a StepDefaults, got .*; write defaults="
    ):
        PipelinesSettings(defaults=wrong)


def test_settings_with_an_inner_section_survive_pickle_and_hash():
    settings = Settings(pipelines=PipelinesSettings(defaults=StepDefaults(retry_limit=2)))
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(Settings(pipelines=PipelinesSettings(defaults=StepDefaults(retry_limit=2))))
