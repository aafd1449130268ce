"""CONTRIBUTING.md: the picture of the layers is drawn from the import contracts."""

from pathlib import Path

from docs.generate_layers import PAGE, parts
from docs.generated_parts import filled

CONTRACTS = """
[[tool.importlinter.contracts]]
type = "layers"
containers = ["windlass"]
layers = ["(web) | app | (cli)", "stores"]

[[tool.importlinter.contracts]]
type = "layers"
containers = ["windlass.stores"]
layers = ["sqlite | (mysql)", "plan"]

[[tool.importlinter.contracts]]
type = "forbidden"
"""


def test_the_page_is_what_the_generator_writes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, parts()) == page, "stale: run `make docs-layers`"


def test_layers_show_what_modules_are_for_and_what_is_planned(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(CONTRACTS)
    stores = tmp_path / "src" / "windlass" / "stores"
    stores.mkdir(parents=True)
    (stores.parent / "app.py").write_text('"""The application.\n\nMore of it."""\n')
    (stores.parent / "cli.py").write_text(f'"""The command{", and more" * 20}."""\n')
    (stores / "__init__.py").write_text('"""All SQL."""\n')
    (stores / "sqlite.py").touch()
    (stores / "plan.py").touch()
    drawn = parts(tmp_path)
    assert drawn["layers"].splitlines()[1:-1] == [
        "┌ app            The application",
        "│ cli            The command" + ", and more" * 9,
        "└ (web)          planned",
        "  stores         All SQL",
    ]
    assert drawn["orders"].splitlines()[1:-1] == ["stores         sqlite ▸ plan"]
