"""Failpoints: what happens at a point, at which pass, and that nothing happens unless it is armed."""

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass
from tests.support.programs import ROOT
from windlass import ConfigurationError
from windlass.domain.clock import monotonic
from windlass.runtime import failpoints
from windlass.runtime.failpoints import POINTS, FailpointError, armed, parse, reached

SOURCES = Path(windlass.__file__).parent
PASSES = """
from windlass.runtime.failpoints import reached
for number in range(1, 5):
    print("pass", number, flush=True)
    reached("run.before_body")
"""


def after_passing(variable: str) -> subprocess.CompletedProcess[str]:
    """A process that passes a point four times."""
    environ = {**os.environ, "WINDLASS_FAILPOINTS": variable}
    command = [sys.executable, "-c", PASSES]
    return subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("variable", "code", "last_pass"),
    [
        ("run.before_body=kill@3", -signal.SIGKILL, 3),
        ("run.before_body=kill", -signal.SIGKILL, 1),
        (" run.before_body = exit @ 2 ; run.after_body=kill", failpoints.EXIT_CODE, 2),
        ("run.before_body=raise@4", 1, 4),
        ("run.before_body=sleep:0.01@2;run.before_body=kill@4", -signal.SIGKILL, 4),
        ("run.after_body=kill;", 0, 4),
        ("", 0, 4),
    ],
)
def test_a_process_fails_at_the_point_and_pass_that_the_variable_names(variable: str, code: int, last_pass: int):
    done = after_passing(variable)
    assert (done.returncode, done.stdout.split()[-1]) == (code, str(last_pass)), done.stderr
    assert ("will fail on purpose" in done.stderr) == bool(variable)


def test_a_stopped_process_does_nothing_until_it_is_continued():
    environ = {**os.environ, "WINDLASS_FAILPOINTS": "run.before_body=stop@2"}
    with subprocess.Popen([sys.executable, "-c", PASSES], env=environ, cwd=ROOT, stdout=subprocess.PIPE) as child:
        pid, status = os.waitpid(child.pid, os.WUNTRACED)
        assert (pid, os.WIFSTOPPED(status)) == (child.pid, True)
        child.send_signal(signal.SIGCONT)
        assert child.stdout is not None
        assert child.stdout.read().split()[-1] == b"4"


def test_sleep_sleeps_and_raise_names_its_point():
    with armed("run.after_body=sleep:0.05;run.before_body=raise@2"):
        began = monotonic()
        reached("run.after_body")
        assert monotonic() - began >= 0.05
        reached("run.before_body")
        with pytest.raises(FailpointError, match=r"failpoint run\.before_body"):
            reached("run.before_body")
    reached("run.before_body")


def test_the_condition_of_a_failpoint_is_evaluated_only_while_one_is_armed():
    asked: list[bool] = []

    def when() -> bool:
        asked.append(True)
        return False

    reached("run.before_body", when)
    assert (asked, failpoints.are_armed()) == ([], False)
    with armed("run.before_body=raise"):
        reached("run.before_body", when)
        assert (asked, failpoints.are_armed()) == ([True], True)


@pytest.mark.parametrize(
    "text",
    [
        "completer.before_comit=kill",
        "kill",
        "=kill",
        "run.before_body",
        "run.before_body=die",
        "run.before_body=",
        "run.before_body=kill@",
        "run.before_body=kill@0",
        "run.before_body=kill@-1",
        "run.before_body=kill@often",
        "run.before_body=kill:3",
        "run.before_body=sleep",
        "run.before_body=sleep:",
        "run.before_body=sleep:long",
        "run.before_body=sleep:-1",
        "run.before_body=sleep:nan",
        "run.before_body=kill@1;run.after_body=kil",
    ],
)
def test_an_invalid_text_is_refused_with_the_names_of_all_points(text: str):
    with pytest.raises(ConfigurationError) as refused:
        parse(text)
    said = str(refused.value)
    assert repr(text.rpartition(";")[2]) in said
    assert "expected" in said
    for name, sentence in POINTS.items():
        assert f"  {name}: {sentence}" in said


def test_a_worker_with_a_wrong_variable_does_not_start():
    done = after_passing("run.befor_body=kill")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "WINDLASS_FAILPOINTS: expected point=action" in done.stderr


def points_in_the_code() -> Iterator[str]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reached":
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path}:{node.lineno}: write the name of the point out"
                yield str(first.value)


def test_the_registry_names_the_points_of_the_code_and_no_others():
    assert set(points_in_the_code()) == set(POINTS)
    assert [name for name in POINTS if not re.fullmatch(r"[a-z_]+\.[a-z_]+", name)] == []


def test_every_point_is_used_by_a_test_of_crashes():
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "crash").rglob("*.py"))]
    unused = [name for name in POINTS if not any(name in text for text in texts)]
    assert unused == []
