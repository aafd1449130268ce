"""The shape of the code base: small files, small functions, no dumping grounds."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ON_SQLITE_FIRST, QUICK_PLACES, SLOW_PLACES
from tests.module_tests import NOT_TESTED, TESTED_BY

pytestmark = pytest.mark.xdist_group("source")

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "windlass"
TESTS = ROOT / "tests"

MAX_SOURCE_FILE_LINES = 300
MAX_TEST_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
LISTS = {"src/windlass/__init__.py"}
"""Files that are a list of names, and as long as that."""
BANNED_MODULE_NAMES = {"common", "helpers", "misc", "utils"}

FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        if isinstance(node, FUNCTION_NODES):
            yield node


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Length from `def` to the last line; decorators and docstring are free."""
    assert function.end_lineno is not None
    length = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        length -= docstring.end_lineno - docstring.lineno + 1
    return length


@pytest.mark.parametrize(("folder", "limit"), [(PACKAGE, MAX_SOURCE_FILE_LINES), (TESTS, MAX_TEST_FILE_LINES)])
def test_files_stay_small(folder: Path, limit: int):
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in python_files(folder)}
    too_long = {name: size for name, size in sizes.items() if size > limit and name not in LISTS}
    assert too_long == {}, f"over {limit} lines: split by topic"


@pytest.mark.parametrize("folder", [PACKAGE, TESTS])
def test_functions_stay_small(folder: Path):
    too_long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": lines
        for path in python_files(folder)
        for function in functions(path)
        if (lines := lines_without_docstring(function)) > MAX_FUNCTION_LINES
    }
    assert too_long == {}, f"over {MAX_FUNCTION_LINES} lines: give a step its own name"


def test_no_module_is_a_dumping_ground():
    modules = [path for folder in (PACKAGE, TESTS) for path in python_files(folder)]
    banned = {str(path.relative_to(ROOT)) for path in modules if path.stem in BANNED_MODULE_NAMES}
    banned |= {str(path.parent.relative_to(ROOT)) for path in modules if path.parent.name in BANNED_MODULE_NAMES}
    assert banned == set(), "name the module after what it is about"


def test_every_package_folder_has_an_init_file():
    """A folder with Python in it is a package with an `__init__.py`, or it would be missing from the wheel's checks."""
    missing = {
        str(path.parent.relative_to(ROOT))
        for path in python_files(PACKAGE)
        if not (path.parent / "__init__.py").exists()
    }
    assert missing == set()


@pytest.mark.parametrize("place", [*SLOW_PLACES, *QUICK_PLACES, *ON_SQLITE_FIRST])
def test_every_path_of_slow_tests_exists(place: str):
    assert (TESTS / place).exists(), "a file that was renamed is no longer left to `make test-slow`"


def test_the_package_ships_its_types():
    assert (PACKAGE / "py.typed").exists()


@cache
def modules_with_code() -> list[str]:
    """Paths of modules below the package; an `__init__.py` that is only a docstring has nothing to test."""
    files = (path for path in python_files(PACKAGE) if len(ast.parse(path.read_text()).body) > 1)
    return [path.relative_to(PACKAGE).as_posix() for path in files]


def file_of_tests(module: Path) -> Path:
    """Where the tests of a module, or of all modules of a folder, are unless `module_tests` says otherwise."""
    return TESTS / module.parent / f"test_{module.stem.lstrip('_')}.py"


def has_own_tests(module: str) -> bool:
    path = Path(module)
    return file_of_tests(path.parent if path.name == "__init__.py" else path).exists()


def line_of(module: str) -> str:
    """The key under which `module_tests` names a module that has no test file: its own, or that of a folder."""
    if module in TESTED_BY or module in NOT_TESTED:
        return module
    folders = [f"{folder.as_posix()}/" for folder in Path(module).parents]
    return next((folder for folder in folders if folder in TESTED_BY), "")


def test_every_module_has_a_test_file_or_a_line_that_names_one():
    """`engine/poller.py`: `tests/engine/test_poller.py`; `cli/dlq/show.py`: that, or `tests/cli/test_dlq.py`."""
    without = [module for module in modules_with_code() if not has_own_tests(module)]
    missing = [module for module in without if not line_of(module) and not file_of_tests(Path(module).parent).exists()]
    assert missing == [], f"add a test file of that name, or a line to tests/module_tests.py: {', '.join(missing)}"


def test_every_line_of_the_map_names_a_file_and_is_needed():
    """A module that has got a test file of its own, or is gone, needs its line no more."""
    assert [file for file in TESTED_BY.values() if not (TESTS / file).exists()] == []
    without = [module for module in modules_with_code() if not has_own_tests(module)]
    needless = {*TESTED_BY, *NOT_TESTED} - set(map(line_of, without))
    same = [f"{key}/" for key in map(str, {Path(m).parent for m in without}) if file_of_tests(Path(key)).exists()]
    needless |= TESTED_BY.keys() & set(same)
    assert needless == set(), f"take out of tests/module_tests.py: {', '.join(needless)}"


def test_docstring_lines_do_not_count_towards_a_function():
    source = 'def f():\n    """One\n    two\n    three.\n    """\n    return 1\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert lines_without_docstring(function) == 2
