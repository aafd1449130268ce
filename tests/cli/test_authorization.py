"""The command line asks the application's authorizer, as the user of the operating system."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.desk import Desk
from windlass import JobStatus
from windlass.cli.parameters import principal

GUARDED = """
from windlass import Windlass

class OnlyLooking:
    def may(self, principal, action, job):
        if not str(principal).startswith("cli:"):
            return None  # never asked for anybody else here
        return action in ("get", "find", "history", "log_lines", "queues", "nodes") and (
            job is None or job.params.get("owner") != "ann"
        )

app = Windlass(authorizer=OnlyLooking(), allow=["tests.cli.desk"])
"""


@pytest.fixture
def guarded(desk: Desk) -> Desk:
    """The desk, whose application refuses all but reads, and reads of Ann's jobs too."""
    (Path.cwd() / "office.py").write_text(GUARDED)
    return desk


REFUSED = [
    ("job", "cancel", "--yes"),
    ("job", "pause"),
    ("job", "resume"),
    ("job", "retry"),
]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_a_refused_verb_names_principal_and_action_for_each_job(guarded: Desk, command: tuple[str, ...]):
    """J6.5: exit code 1, a line per job, and nothing changed."""
    ids = [str(guarded.charge.enqueue(number).id) for number in (1, 2)]
    lines = guarded.stdout(*command, *ids, code=1).splitlines()
    done = {"cancel": "canceled", "pause": "paused", "resume": "resumed", "retry": "retried"}[command[1]]
    why = f"not {done}: {principal()} may not {command[1]} it: the authorizer refused"
    assert lines == [f"{job}\t{why}" for job in ids]
    assert [job.status for job in guarded.app.find()] == [JobStatus.PENDING] * 2


BULK = [
    (("job", "cancel", "--tag", "x", "--yes"), "cancel_by_tag"),
    (("job", "retry", "--all-failed"), "retry_many"),
    (("queue", "pause", "default"), "pause_queue"),
    (("queue", "resume", "default"), "resume_queue"),
    (("node", "drain", "nobody", "--yes"), "drain_node"),
]


@pytest.mark.parametrize(("command", "action"), BULK, ids=[action for _, action in BULK])
def test_a_refused_command_names_principal_and_action(guarded: Desk, command: tuple[str, ...], action: str):
    """J6.5: exit code 1, on standard error."""
    guarded.charge.enqueue(1)
    result = guarded.run(*command)
    assert result.exit_code == 1
    assert f"Error: {principal()} may not {action}: the authorizer refused" in result.stderr


def test_the_authorizer_also_checks_reads(guarded: Desk):
    """J6.5: what may not be seen is neither listed nor shown."""
    mine, anns = guarded.charge.enqueue(1), guarded.charge.using(params={"owner": "ann"}).enqueue(2)
    listed = json.loads(guarded.stdout("job", "list", "--json"))["items"]
    assert [job["id"] for job in listed] == [str(mine.id)]
    assert "charge" in guarded.stdout("job", "show", mine.id)
    for command in (("job", "show"), ("job", "tail"), ("job", "tail", "--json"), ("job", "graph")):
        result = guarded.run(*command, anns.id)
        assert result.exit_code == 1
        action = "graph" if "graph" in command else "get"
        assert f"Error: {principal()} may not {action} job {anns.id}: the authorizer refused" in result.stderr
        assert "charge" not in result.stdout


def test_the_user_is_the_operating_systems_and_not_the_shells(monkeypatch: pytest.MonkeyPatch):
    """J6.5: no variable changes the user; a number without a name is a number."""
    for variable in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        monkeypatch.setenv(variable, "somebody-else")
    assert principal().startswith("cli:")
    assert "somebody-else" not in principal()
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)
    assert principal() == "cli:4000000001"
