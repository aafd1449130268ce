"""PostgreSQL URLs: what is added to them, and what is wrong with those that are refused."""

import psycopg
import pytest

from windlass import ConfigurationError, Settings, Windlass
from windlass.stores.postgres.url import parts_of

NAMES = (
    "SELECT DISTINCT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
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


def names_seen(url: str) -> set[str]:
    """The names that an application's connections have while they are open."""
    app = Windlass(url, settings=Settings())
    app.migrate()
    with psycopg.connect(url, application_name="observer") as observer:
        names = {name for (name,) in observer.execute(NAMES.encode())}
    app.close()
    return names


def test_connections_name_the_program_host_and_process(pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """Our connections can be recognised in pg_stat_activity."""
    monkeypatch.delenv("PGAPPNAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "web1")
    monkeypatch.setattr("windlass.stores.postgres.url.getpid", lambda: 1234)
    assert names_seen(pg_url) == {"windlass web1-1234"}


def test_a_name_of_the_users_is_kept(pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """The URL's name wins, then PGAPPNAME."""
    monkeypatch.setenv("PGAPPNAME", "from the environment")
    assert names_seen(pg_url) == {"from the environment"}
    assert names_seen(f"{pg_url}?application_name=shop") == {"shop"}
