"""`windlass queue limit`, `windlass resource`, `windlass circuit` and `windlass job explain`."""

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.desk import Desk
from tests.support.waiting import until
from windlass import CircuitProfile, CircuitState, JobStatus


def lines(text: str) -> list[list[str]]:
    """Plain output, by its tabs."""
    return [line.split("\t") for line in text.splitlines()]


def undrawn(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


# ------------------------------------------------------------------ queue limit


def test_a_queue_is_limited_and_the_limit_lifted(desk):
    """J1.7, through the command, while a worker runs."""
    desk.charge.using(queue="mail", delay=3600).enqueue(0)
    assert desk.stdout("queue", "limit", "mail", "--concurrency", "0") == "queue mail lets through 0 at a time\n"
    held = desk.charge.using(queue="mail").enqueue(1)
    with desk.app.worker():
        until(lambda: desk.app.explain(held.id).code == "queue_full", "the queue to be full")
        assert desk.stdout("queue", "limit", "mail") == "queue mail lets through any number\n"
        until(lambda: held.status() is JobStatus.SUCCEEDED, "the held job to run")
    output = desk.stdout("queue", "limit", "mail", "--concurrency", "20", "--rate", "1000", "--per", "minute")
    assert output == "queue mail lets through 20 at a time, 1,000 per minute\n"


# ------------------------------------------------------------------ resource


def test_resources_are_set_and_listed_with_what_is_in_use(desk):
    """J6.2: keys that were used lately stand below their resource."""
    assert desk.run("resource", "list").stderr == "no resource is configured\n"
    output = desk.stdout(
        *("resource", "set", "stripe", "--create"), "--max-concurrent", "5", "--rate", "100", "--retry-delay", "2.5"
    )
    assert output == "resource stripe lets through 5 at a time, 100 per second\n"
    desk.work_off(desk.charge.using(resource="stripe", resource_key="acme & co").enqueue(1))
    assert lines(desk.stdout("resource", "list")) == [
        ["stripe", "", "0", "5", "100 per second", "2.5 s"],
        ["stripe", "acme & co", "0", "5", "100 per second", "2.5 s"],
    ]
    first, keyed = desk.read("resource", "list")["items"]
    assert first == {
        "name": "stripe",
        "key": None,
        "max_concurrent": 5,
        "in_use": 0,
        "rate": 100,
        "per": "second",
        "retry_delay": 2.5,
    }
    assert keyed == {**first, "key": "acme & co"}
    assert desk.stdout("resource", "set", "stripe", "--rate", "7", "--per", "hour") == (
        "resource stripe lets through 7 per hour\n"
    )
    assert [line[3:5] for line in lines(desk.stdout("resource", "list"))] == [["", "7 per hour"]] * 2


def test_people_get_a_table_of_resources(sqlite_desk):
    sqlite_desk.app.configure_resource("stripe", 0)
    drawn = undrawn(sqlite_desk.drawn("resource", "list", columns=100)).splitlines()
    assert drawn[0].split() == ["resource", "in", "use", "at", "a", "time", "looked", "at", "again"]
    assert drawn[2].split() == ["stripe", "0", "0", "5", "s"]


# ------------------------------------------------------------------ circuit


def test_circuits_are_listed_opened_closed_and_reset(desk):
    """J6.1: by hand, through the command."""
    assert desk.run("circuit", "list").stderr == "no circuit has been used\n"
    opened = desk.run("circuit", "open", "gateway", "--create")
    assert opened.stdout == "circuit gateway is open until it is closed\n"
    assert opened.stderr == "to undo it: windlass circuit close gateway\n"
    waits = desk.charge.using(circuit="gateway").enqueue(1)
    assert desk.app.circuit("gateway").state() is CircuitState.OPEN
    assert lines(desk.stdout("circuit", "list")) == [
        ["gateway", "open", "0 of 0", "50 % of 100", "when closed by hand"]
    ]
    (item,) = desk.read("circuit", "list")["items"]
    shown = {name: item[name] for name in ("service", "state", "calls", "failures", "opens_at", "held_open")}
    assert shown == {
        "service": "gateway",
        "state": "OPEN",
        "calls": 0,
        "failures": 0,
        "opens_at": None,
        "held_open": True,
    }
    assert item["settings"]["open_wait"] == 30.0
    assert desk.stdout("circuit", "close", "gateway") == "circuit gateway is closed\n"
    desk.work_off(waits)
    assert lines(desk.stdout("circuit", "list"))[0][:3] == ["gateway", "closed", "0 of 1"]
    assert desk.stdout("circuit", "reset", "gateway") == "circuit gateway is closed and counts from the start\n"
    assert lines(desk.stdout("circuit", "list"))[0][:3] == ["gateway", "closed", "0 of 0"]


def test_a_circuit_that_failures_opened_shows_when_it_allows_a_trial(desk):
    desk.app.configure_circuit("gateway", CircuitProfile.FAST, minimum_calls=1, open_wait=3600)
    desk.work_off(desk.decline.using(circuit="gateway").enqueue(1))
    until(lambda: desk.app.circuit("gateway").state() is CircuitState.OPEN, "the circuit to open")
    ((service, state, failed, opens, again),) = lines(desk.stdout("circuit", "list"))
    assert (service, state, failed, opens) == ("gateway", "open", "0 of 0", "50 % of 20")
    assert again.endswith("Z")
    drawn = undrawn(desk.drawn("circuit", "list", columns=100)).splitlines()
    assert drawn[0].split() == ["service", "state", "failed", "opens", "at", "tried", "again"]
    assert "in 5" in drawn[2] or "in 1 h" in drawn[2]


@pytest.mark.parametrize("verb", ["open", "close", "reset"])
def test_an_unknown_circuit_is_refused_with_a_suggestion(desk, verb):
    """J10.7: the service that was meant would go on being called."""
    desk.app.configure_circuit("gateway")
    result = desk.run("circuit", verb, "gatway")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no circuit gatway is known, so nothing was changed; did you mean gateway?" in result.stderr
    assert ("--create" in result.stderr) is (verb == "open")
    assert [one.service for one in desk.app.circuits()] == ["gateway"]


def test_an_unknown_resource_is_refused_with_a_suggestion(desk):
    """J10.7: what was to be closed would stay open; and a closed one says how it is opened."""
    desk.app.configure_resource("stripe", 5)
    result = desk.run("resource", "set", "strip", "--max-concurrent", "0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no resource strip is known, so nothing was changed; did you mean stripe?" in result.stderr
    assert [one.name for one in desk.app.resources()] == ["stripe"]
    closed = desk.run("resource", "set", "stripe", "--max-concurrent", "0")
    assert closed.stdout == "resource stripe lets through 0 at a time\n"
    assert "windlass resource set stripe --max-concurrent 1" in closed.stderr


# ------------------------------------------------------------------ job explain


def test_a_job_is_explained_in_a_line(desk):
    """api.md explain: the code, the sentence, and until when."""
    desk.app.configure_resource("stripe", 0)
    ready, later = desk.charge.enqueue(1), desk.charge.using(delay=3600).enqueue(2)
    held = desk.charge.using(resource="stripe").enqueue(3)
    assert desk.stdout("job", "explain", ready.id) == (
        "no_worker: no worker is alive; start one: windlass worker <module>:<app>\n"
    )
    output = desk.stdout("job", "explain", later.id)
    assert re.fullmatch(r"not_due: it is not due yet, until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", output)
    found = desk.read("job", "explain", later.id)
    assert (found["code"], found["message"]) == ("not_due", "it is not due yet")
    assert found["until"].endswith("Z")
    with desk.app.worker():
        assert desk.read("job", "explain", held.id) == {
            "code": "permit_full",
            "message": "resource stripe lets 0 jobs run at a time, and has 0",
            "until": None,
        }


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["queue", "limit"], 2, "Missing argument 'NAME'"),
        (["queue", "limit", "my mail", "--rate", "5"], 2, "queue must be 1 to 64 characters"),
        (["queue", "limit", "default", "--rate", "0"], 2, "rate must be a whole number of at least 1"),
        (["queue", "limit", "mail", "--rate", "many"], 2, "'many' is not a valid integer"),
        (["queue", "limit", "mail", "--rate", "5", "--per", "week"], 2, "'week' is not one of"),
        (["resource", "set", "stripe", "--create"], 2, "resource 'stripe' needs a limit"),
        (["resource", "set", "my stripe", "--max-concurrent", "5"], 2, "resource must be 1 to 64 characters"),
        (
            ["resource", "set", "stripe", "--create", "--max-concurrent", "-1"],
            2,
            "max_concurrent must be a whole number",
        ),
        (["circuit", "open", "my gateway"], 2, "circuit must be 1 to 64 characters"),
        (["circuit", "close"], 2, "Missing argument 'SERVICE'"),
        (["job", "explain", "seven"], 2, "seven"),
    ],
)
def test_bad_input_is_wrong_usage_and_changes_nothing(
    sqlite_desk: Desk, arguments: list[str], code: int, complaint: str
):
    """operations.md: exit code 2, and an error that says what was wrong."""
    result = sqlite_desk.run(*arguments)
    assert (result.exit_code, complaint in result.output) == (code, True), result.output
    assert (sqlite_desk.app.queues(), sqlite_desk.app.resources(), sqlite_desk.app.circuits()) == ([], [], [])


def test_a_job_that_is_not_there_is_an_error(sqlite_desk: Desk):
    result: Any = sqlite_desk.run("job", "explain", uuid4())
    assert result.exit_code == 1
    assert "no job" in result.output
