"""Store URLs: the valid forms, the errors for others, and the default."""

import logging
from pathlib import Path

import pytest

from windlass import ConfigurationError, Settings, Windlass
from windlass.domain.clock import SystemClock
from windlass.stores.open import choose_url, open_database
from windlass.stores.sqlite.dialect import SqliteDatabase


def path_in(url: str) -> str:
    database = open_database(url, SystemClock())
    assert isinstance(database, SqliteDatabase)
    return database.path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///shop.db", "shop.db"),
        ("sqlite:///data/shop.db?synchronous=normal", "data/shop.db"),
        ("sqlite:////var/lib/shop.db", "/var/lib/shop.db"),
        ("sqlite:///shop#1.db", "shop#1.db"),
        ("sqlite://", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
    ],
)
def test_the_forms_of_a_sqlite_url(url: str, path: str):
    """J1.10."""
    assert path_in(url) == path


@pytest.mark.parametrize(
    "url",
    ["", " ", "sqlite", "sqlite:", "sqlite:/", "sqlite:/shop.db", "sqlite:shop.db", "sqlite:///", "sqlite://shop.db",
     "sqlite:///a\0b", "sqlite:///shop.db?sync=full", "sqlite:///shop.db?synchronous=", "postgresql:shop", "shop.db",
     "postgresql:/host/shop", "file:shop.db", 42, Path("shop.db"), b"sqlite:///shop.db", True],
)  # fmt: skip
def test_every_other_value_is_refused_with_the_right_form(url: object):
    """J1.10: also an empty text and what is no text."""
    with pytest.raises(ConfigurationError, match=r"sqlite:///|synchronous=full"):
        Windlass(url, settings=Settings())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "meant"), [("shop.db", "sqlite:///shop.db"), (Path("/a/shop.db"), "sqlite:////a/shop.db")]
)
def test_a_path_in_place_of_a_url_is_answered_with_the_url_of_that_file(url: object, meant: str):
    """J1.10."""
    with pytest.raises(ConfigurationError, match=meant):
        open_database(url, SystemClock())  # type: ignore[arg-type]


def test_an_empty_variable_is_refused_and_named(monkeypatch: pytest.MonkeyPatch):
    """J1.10: a variable that is set chooses the store."""
    monkeypatch.setenv("WINDLASS_URL", "")
    with pytest.raises(ConfigurationError, match=r"WINDLASS_URL is empty.*unset it to use sqlite:///windlass.db"):
        Windlass(settings=Settings())
    assert Windlass("sqlite://", settings=Settings()).url == "sqlite://"
    assert choose_url(None, {"WINDLASS_URL": "sqlite:///x.db"}) == ("sqlite:///x.db", False)


def test_the_default_file_is_named_in_one_warning_at_first_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """J1.10: a process whose variable is missing says where its jobs go; one that chose that file says nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDLASS_URL", raising=False)
    app = Windlass(settings=Settings())
    assert not caplog.records, "nothing was used yet"
    app.queues()
    app.migrate()
    app.queues()
    app.close()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.name.partition(".")[0] for record in warnings] == ["windlass"]
    assert str(tmp_path / "windlass.db") in warnings[0].getMessage()
    assert "WINDLASS_URL" in warnings[0].getMessage()
    caplog.clear()
    chosen = Windlass("sqlite:///windlass.db", settings=Settings())
    chosen.queues()
    chosen.close()
    assert not caplog.records


def test_a_program_that_changes_its_folder_keeps_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """J1.10: a relative path is that of the folder of the first use."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app = Windlass("sqlite:///shop.db", settings=Settings(), allow=["tests.engine.jobs"])
    app.migrate()
    monkeypatch.chdir(tmp_path / "there")
    assert app.find().items == []
    assert app.migrate() == []
    app.close()
    assert list((tmp_path / "there").iterdir()) == []
