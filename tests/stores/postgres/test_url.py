"""PostgreSQL URLs: what is added to them, and what is wrong with those that are refused."""

import psycopg
import pytest

from tests.support.waiting import until
from windlass import ConfigurationError, Settings, Windlass
from windlass.stores.postgres.url import parts_of

NAMES = (
    "SELECT DISTINCT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name <> 'observer'"
)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("foo=bar", "unknown option 'foo' after its question mark; expected are options of libpq"),
        ("sslmod=require", "unknown option 'sslmod' after its question mark; did you mean 'sslmode'"),
        ("options", "the option 'options' of the PostgreSQL URL cannot be read"),
    ],
)
def test_the_option_that_libpq_refuses_is_named(query: str, said: str):
    """An error says what came and what was expected, and never the password."""
    with pytest.raises(ConfigurationError) as caught:
        parts_of(f"postgresql://shop:hunter2@db/shop?{query}")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_password_that_is_not_percent_encoded_is_not_shown():
    with pytest.raises(ConfigurationError, match="percent-encoded") as caught:
        parts_of("postgresql://shop:hunter%2@db/shop")
    assert "hunter" not in str(caught.value)


def connections_are_named(url: str, name: str) -> None:
    """Open an application's connections and check their name. The server still lists closed ones for a moment."""
    app = Windlass(url, settings=Settings())
    app.migrate()
    with psycopg.connect(url, application_name="observer", autocommit=True) as observer:
        until(lambda: observer.execute(NAMES.encode()).fetchall() == [(name,)], f"connections named {name} alone")
    app.close()


def test_connections_name_the_program_host_and_process(pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """Our connections can be recognised in pg_stat_activity."""
    monkeypatch.delenv("PGAPPNAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "web1")
    monkeypatch.setattr("windlass.stores.postgres.url.getpid", lambda: 1234)
    connections_are_named(pg_url, "windlass web1-1234")


def test_a_name_of_the_users_is_kept(pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """The URL's name wins, then PGAPPNAME."""
    monkeypatch.setenv("PGAPPNAME", "from the environment")
    connections_are_named(pg_url, "from the environment")
    connections_are_named(f"{pg_url}?application_name=shop", "shop")
