"""`.ci/commit_subjects.py`: what the commit-msg hook and `make check` refuse."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / ".ci" / "commit_subjects.py"
objection = runpy.run_path(str(SCRIPT))["objection"]


def check(*arguments: str, folder: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    script = folder / ".ci" / "commit_subjects.py"
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "subject",
    [
        "Release permits of canceled jobs in the cancel transaction",
        "Pass the clock to the sweeper",
        "Feed the publisher with effects",
        "Bring lanes and gates together",
        "Re-drive dead letters in batches",
        'Revert "Release permits"',
        "Merge branch 'columns'",
        "F" + "o" * 70 + "x",
    ],
)
def test_an_imperative_subject_passes(subject: str):
    assert objection(subject) == ""


@pytest.mark.parametrize(
    ("subject", "complaint"),
    [
        ("Released permits", "imperative"),
        ("Releases permits", "imperative"),
        ("Releasing permits", "imperative"),
        ("The permits of canceled jobs", "imperative"),
        ("release permits", "capital letter"),
        ("fix: release permits", "capital letter"),
        ("Permits: release them", "capital letter"),
        ("Release permits.", "full stop"),
        ("Release " + "permits " * 9, "at most 72"),
        ("", "capital letter"),
    ],
)
def test_another_subject_is_refused_with_the_reason(subject: str, complaint: str):
    assert complaint in objection(subject)


def test_the_hook_reads_the_first_line_that_is_not_of_git(tmp_path: Path):
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("# Please enter a message\n\nReleased permits\n\nBecause.\n")
    done = check(str(message))
    assert done.returncode == 1
    assert "Released permits" in done.stderr
    message.write_text("Release permits\n\nThis body may be as long as it likes, and say what it wants.\n")
    assert check(str(message)).returncode == 0


def test_nothing_is_checked_outside_a_clone(tmp_path: Path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "commit_subjects.py").write_text(SCRIPT.read_text(encoding="utf-8"))
    done = check(folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_hook_is_executable():
    assert (ROOT / ".githooks" / "commit-msg").stat().st_mode & 0o111
