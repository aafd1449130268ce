"""`windlass migrate`: apply missing migrations, or list (`--status`), print (`--sql`) or check (`--check`) them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.application import application, load_app
from windlass.cli.output import console, drawn, write_json, write_line
from windlass.cli.parameters import json_option
from windlass.stores import migrate, queries
from windlass.stores.migrate import Migration

_NOW: Final = {
    "postgres": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
}
"""The current time in microseconds, as an SQL expression."""


@click.command(
    name="migrate", epilog="Exit codes: 0 done or up to date, 1 an error, or --check found something missing."
)
@application
@click.option("--status", is_flag=True, show_envvar=True, help="List every migration: applied, or pending.")
@click.option("--check", is_flag=True, show_envvar=True, help="Say whether the schema is current; exit code 1 if not.")
@click.option("--sql", is_flag=True, show_envvar=True, help="Print what is missing as a script, and apply nothing.")
@click.option(
    "--from",
    "assumed",
    type=click.IntRange(min=0),
    metavar="VERSION",
    envvar="WINDLASS_MIGRATE_FROM",
    show_envvar=True,
    help="With --sql: what follows this version (0: everything), without asking the store.",
)
@json_option("migrate", "With --status or --check: for programs.")
def command(location: str, status: bool, check: bool, sql: bool, assumed: int | None, as_json: bool) -> None:
    """Bring the schema of APP's store up to date. SQLite does this by itself when it is first used.

    \b
        windlass migrate shop:app
        windlass migrate shop:app --check
        windlass migrate shop:app --sql > for-the-dba.sql
    """
    if status + check + sql > 1:
        raise click.UsageError("--status, --check and --sql exclude each other; give one of them")
    if assumed is not None and not sql:
        raise click.UsageError("--from belongs to --sql")
    if as_json and not (status or check):
        raise click.UsageError("--json belongs to --status or --check")
    app = load_app(location)
    try:
        if status or check or (sql and assumed is None):
            app.database.require()
        if sql:
            write_line(script(app, assumed))
        elif status:
            _status(app, as_json=as_json)
        elif check:
            _check(app, location, as_json=as_json)
        else:
            _apply(app)
    finally:
        app.close()


def _apply(app: Windlass) -> None:
    applied = app.migrate()
    for name in applied:
        write_line(f"applied {name}")
    write_line(f"{app.database.description}: {'up to date' if applied else 'nothing to do, the schema is current'}")


def _check(app: Windlass, location: str, *, as_json: bool) -> None:
    store, missing = app.database.description, [migration.name for migration in migrate.pending(app.database)]
    if as_json:
        write_json({"store": store, "current": not missing, "pending": missing})
    elif missing:
        write_line(f"{store}: the schema lacks {', '.join(missing)}; run `windlass migrate {location}`")
    else:
        write_line(f"{store}: the schema is current")
    if missing:
        raise SystemExit(1)


def _status(app: Windlass, *, as_json: bool) -> None:
    missing = {migration.version for migration in migrate.pending(app.database)}
    rows = [
        (migration.version, migration.name, "pending" if migration.version in missing else "applied")
        for migration in migrate.migrations(app.database.dialect.name)
    ]
    if as_json:
        items = [dict(zip(("version", "name", "state"), row, strict=True)) for row in rows]
        write_json({"store": app.database.description, "items": items, "next_cursor": None})
    elif drawn():
        _draw_status(app.database.description, rows)
    else:
        write_line(app.database.description)
        for _, name, state in rows:
            write_line(f"  {name}: {state}")


def _draw_status(store: str, rows: Sequence[tuple[int, str, str]]) -> None:
    from rich.table import Table

    table = Table(title=store, title_justify="left", title_style="bold", border_style="cyan")
    for heading in ("version", "migration", "state"):
        table.add_column(heading)
    for version, name, state in rows:
        table.add_row(str(version), name, f"[{'green' if state == 'applied' else 'yellow'}]{state}")
    console().print(table)


def script(app: Windlass, assumed: int | None) -> str:
    """Return the missing migrations as SQL for any client; it leaves the store as `windlass migrate` would."""
    dialect = app.database.dialect.name
    if assumed is None:
        missing = migrate.pending(app.database)
    else:
        missing = [migration for migration in migrate.migrations(dialect) if migration.version > assumed]
    if not missing:
        return "-- nothing is missing: the schema is current"
    return "\n\n".join(_transaction(dialect, migration) for migration in missing)


def _transaction(dialect: str, migration: Migration) -> str:
    statements = queries.load(dialect)
    values = f"{migration.version}, '{migration.name}', '{migration.checksum}', {_NOW[dialect]}"
    record = "INSERT INTO windlass_migration (version, name, checksum, applied_at) VALUES"
    parts = [
        f"-- {migration.name}",
        "BEGIN;",
        f"{statements['create_migration_table'].sql};",
        migration.script.strip(),
        f"{record} ({values});",
        "COMMIT;",
    ]
    return "\n\n".join(parts)
