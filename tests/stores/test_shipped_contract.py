"""The contract is shipped: a store of another package runs through it from the outside."""

import subprocess
import sys
from pathlib import Path

from windlass.testing import contract


def test_the_example_in_the_docstring_runs_unchanged(tmp_path: Path):
    """Design §2: `windlass.testing.contract` needs nothing but the fixtures its docstring shows."""
    assert contract.__doc__ is not None
    example = contract.__doc__.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "test_my_store.py").write_text(example)
    chosen = "new_job_is_pending or one_due_time_come_by_id"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_every_part_of_the_contract_is_exported():
    """Design §2: a part that is not exported is a part that a new store would miss."""
    folder = Path(contract.__file__).parent
    shared = {"flow_setup", "gate_setup", "schedule_setup", "workbench"}
    parts = {path.stem for path in folder.glob("*.py")} - {"__init__", *shared}
    assert {f"{part.title().replace('_', '')}Contract" for part in parts} | {"Workbench"} == set(contract.__all__)
    assert parts | shared == set(contract._PARTS)
