"""Named statements: shared where they can be, overridden by need, all in use, and only in the stores."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

import windlass
from tests.stores.subqueries import unnamed_subqueries
from windlass.domain.clock import SystemClock
from windlass.stores import queries
from windlass.stores.dialect import Dialect
from windlass.stores.migrate import migrations
from windlass.stores.plan import Step
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.stores.sqlite.session import Session

pytestmark = pytest.mark.xdist_group("source")

PACKAGE = Path(windlass.__file__).parent
STORES = PACKAGE / "stores"
DIALECTS: dict[str, type[Dialect]] = {"sqlite": SqliteDialect, "postgres": PostgresDialect}

OVERRIDES = {
    "sqlite": set(),
    "postgres": {
        "applied",
        "count_members",
        "counted_members",
        "expire_waits",
        "find_executions_of_keys",
        "forget_groups",
        "forget_tags",
        "forget_ticks",
        "gate_rows",
        "heads",
        "holders_of_handoffs",
        "insert_jobs",
        "keys",
        "lock_archivable",
        "lock_archived",
        "lock_circuits",
        "lock_ended",
        "lock_expired",
        "lock_gates",
        "lock_holder",
        "lock_key_gates",
        "lock_live",
        "lock_migrations",
        "lock_operations",
        "new_jobs",
        "orphaned_jobs",
        "purge_items",
        "purge_transitions",
        "release_branches",
        "release_followers",
        "take_lease",
        "walk_indexes",
    },
}
"""What the other databases could not share. Each name here is one more thing to keep right twice."""

SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT INTO|UPDATE\s+\w+\s+SET|DELETE FROM|(CREATE|DROP|ALTER) (TABLE|INDEX))\b", re.DOTALL
)
PLACES = re.compile(r"\{(\w+)\}")
LITERALS = {"now", "moment", "chunk", "window", "most"}
ONE_EACH = {"chunk": 1, "window": 1, "most": 1}

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def files_of(dialect: str) -> list[Path]:
    return sorted((STORES / dialect / "sql").glob("*.sql"))


def names_in(files: list[Path]) -> set[str]:
    return {name for file in files for name in re.findall(r"^-- name: (\w+)", file.read_text(), re.MULTILINE)}


def strings_in(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def strings_of(files: Iterator[Path] | list[Path]) -> set[str]:
    return set().union(*map(_strings_of, files))


@cache
def _strings_of(file: Path) -> set[str]:
    return set(strings_in(ast.parse(file.read_text())))


def names_the_plans_use(dialect: str) -> set[str]:
    """Statements that some plan of this dialect may name: those of methods it has overridden are not among them."""
    shared = [*STORES.glob("*.py"), *(STORES / "plans").glob("*.py")]
    found = strings_of([file for file in shared if file.stem not in ("columns", "dialect")])
    found |= strings_of(list((STORES / dialect).glob("*.py")))
    tree = ast.parse((STORES / "dialect.py").read_text())
    (base,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Dialect")
    methods = {node.name: node for node in base.body if isinstance(node, ast.FunctionDef)}
    waiting = [name for name in methods if not name.startswith("_") and name not in vars(DIALECTS[dialect])]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name in vars(DIALECTS[dialect]):
            continue
        seen.add(name)
        found |= set(strings_in(methods[name]))
        waiting += [
            part.attr for part in ast.walk(methods[name]) if isinstance(part, ast.Attribute) and part.attr in methods
        ]
    every = set().union(*(queries.load(other) for other in DIALECTS))
    return found & every


@each_dialect
def test_every_statement_a_plan_names_is_defined_and_whole(dialect: str):
    """Design §3: common first, the dialect wins; a fragment that a dialect lacks would leave a hole in the text."""
    known = queries.load(dialect)
    used = names_the_plans_use(dialect)
    assert used - known.keys() == set()
    holes = {name: set(PLACES.findall(known[name].sql)) - LITERALS for name in used}
    assert {name: places for name, places in holes.items() if places} == {}
    assert len(used) > 30


def test_a_name_means_the_same_kind_of_answer_everywhere():
    """Design §3: a plan is sent rows, a row or a count, whichever database it runs on."""
    sqlite, postgres = queries.load("sqlite"), queries.load("postgres")
    shared = sqlite.keys() & postgres.keys()
    assert {name for name in shared if sqlite[name].kind != postgres[name].kind} == set()


@each_dialect
def test_overrides_are_few_and_known(dialect: str):
    """Design §3: add a name here on purpose, with the reason at the top of its file."""
    assert names_in(files_of("plans")) & names_in(files_of(dialect)) == OVERRIDES[dialect]


@pytest.mark.parametrize(
    "file", [file for dialect in DIALECTS for file in files_of(dialect)], ids=lambda file: file.name
)
def test_a_dialects_own_file_states_the_reason(file: Path):
    """Design §3: what is not shared starts with its reason."""
    assert file.read_text().startswith("-- Differs by need: ")


def test_no_statement_is_unused():
    """Design §3: a statement that no plan names is not tested."""
    in_use = set().union(*(names_the_plans_use(dialect) for dialect in DIALECTS))
    assert {name for dialect in DIALECTS for name in queries.load(dialect)} - in_use == set()


def test_no_fragment_is_unused():
    """Design §3: the same for the pieces of statements."""
    texts = "\n".join(file.read_text() for file in STORES.glob("*/sql/*.sql"))
    fragments = set(re.findall(r"-- name: (\w+) :(?:fragment|table|arrays|bulk)", texts))
    made = {"lookup"}  # of the form {h.id = j.id}
    tables = {"json_table", "json_column", "array_table", "array_column", "bulk_form", "id", "text", "integer", "real"}
    assert fragments - set(PLACES.findall(texts)) == tables - {"integer"} | made
    assert fragments


def test_there_is_no_sql_outside_the_stores():
    """Design §1: no query strings in engine code; tests and measures of databases excepted."""
    printed = {"cli/migrate.py"}  # scripts for an operator's own client, which we never run
    places = {"stores", "testing"}
    files = [file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in places]
    files = [file for file in files if "bench" not in str(file.relative_to(PACKAGE))]
    found = {str(file.relative_to(PACKAGE)) for file in files if any(map(SQL.search, strings_of([file])))}
    assert found <= printed
    assert SQL.search("SELECT a\nFROM b")


def test_every_subquery_in_from_has_an_alias():
    """J3.2: PostgreSQL 15 asks for one, though newer servers, on which most of the tests run, do not."""
    texts = {name: query.sql for name, query in queries.load("postgres").items()}
    texts |= {migration.name: migration.script for migration in migrations("postgres")}
    texts |= {text: text for text in strings_of(list(STORES.rglob("*.py"))) if SQL.search(text)}
    found = {name: unnamed for name, text in texts.items() if (unnamed := unnamed_subqueries(text))}
    assert found == {}


@pytest.mark.parametrize(
    ("sql", "unnamed"),
    [
        ("SELECT id FROM (SELECT 1 AS id)", 1),
        ("SELECT id FROM (SELECT 1 AS id) WHERE true", 1),
        ("DELETE FROM a WHERE id IN (SELECT id FROM (SELECT unnest(:ids::uuid[]) AS id))", 1),
        ("SELECT 1 FROM a, (VALUES (1), (2)) ORDER BY 1", 1),
        ("SELECT 1 FROM a LEFT JOIN LATERAL (SELECT 1 FROM (SELECT 2) LIMIT 1) ON true", 2),
        ("UPDATE a SET b = c.b FROM (SELECT 1 AS b) CROSS JOIN (SELECT 2) c", 1),
        ("SELECT id FROM (SELECT 1 AS id) i WHERE id IN (SELECT 2) AND x = (SELECT 3)", 0),
        ("SELECT 1 FROM a, (VALUES (1), (2)) AS b(number), unnest(:c::int[])", 0),
        ("WITH a AS (SELECT 1) SELECT extract(epoch FROM now()), (SELECT 1), coalesce(b, (SELECT 2)) FROM a", 0),
    ],
)
def test_a_subquery_without_an_alias_is_found(sql: str, unnamed: int):
    assert len(unnamed_subqueries(sql)) == unnamed


def test_sqlite_compiles_every_statement_its_plans_name(migrated_file: Path):
    """Design §3: tables, columns and parameters exist, also for statements that run only on bad days."""
    connection = connect(str(migrated_file), "FULL", SystemClock().micros)
    known = queries.load("sqlite")
    session = Session.of_writer(connection)
    for name in sorted(names_the_plans_use("sqlite")):
        text = session._text(known[name], ONE_EACH)
        parameters = dict.fromkeys(queries._PARAMETER.findall(text))
        connection.execute(f"EXPLAIN {text}", parameters).fetchall()
    connection.close()


def test_postgresql_compiles_every_statement_its_plans_name(migrated_postgres: str):
    """Design §3: the same there; types are inferred as they are when a plan runs."""
    statements = Statements()
    with psycopg.connect(migrated_postgres, autocommit=True) as connection:
        for name in sorted(names_the_plans_use("postgres")):
            query = statements.query(Step(name))
            text = statements.text(query, ONE_EACH)
            if not text.startswith(("COPY", "CREATE")):
                connection.execute(f"EXPLAIN {text}", dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
