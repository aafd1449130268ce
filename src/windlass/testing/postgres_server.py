"""Databases on a PostgreSQL server, made and dropped for one test each."""

from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from windlass.errors import ConfigurationError


class PostgresServer:
    """A running server on which the user of `url` may create databases.

    >>> server = PostgresServer("postgresql://postgres@127.0.0.1:5432/postgres")  # doctest: +SKIP
    >>> url = server.create_database()  # doctest: +SKIP
    >>> server.drop_database(url)  # doctest: +SKIP
    """

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        """Where the server's maintenance database is."""
        return self._url

    def create_database(self, template: str | None = None) -> str:
        """Create an empty database, or a copy of `template` (a name or a URL from here), and return its URL.

        No session may be connected to the template while it is copied.
        """
        source = "template0" if template is None else _database_name(template)
        name = f"windlass_{uuid4().hex[:16]}"
        # Copying files is faster than the default, which writes every page through the WAL.
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(source)
            )
        )
        return _with_database(self.url, name)

    def drop_database(self, url: str) -> None:
        """Drop the database behind `url`, ending the sessions still in it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_database_name(url))))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


def _database_name(name_or_url: str) -> str:
    if "://" not in name_or_url:
        return name_or_url
    name = conninfo_to_dict(name_or_url).get("dbname")
    if not name:
        raise ConfigurationError(f"Expected a URL that names a database, got {name_or_url!r}: add /NAME to it.")
    return str(name)


def _with_database(url: str, name: str) -> str:
    address, question_mark, options = url.partition("?")
    scheme, _, rest = address.partition("://")
    authority = rest.partition("/")[0]
    return f"{scheme}://{authority}/{name}{question_mark}{options}"
