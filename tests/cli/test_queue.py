"""`windlass queue`."""

import re

import pytest

from tests.cli.terminal import Terminal
from tests.support.waiting import until
from windlass import JobStatus
from windlass.cli import phrases


def test_every_queue_is_listed_with_what_waits_and_runs(desk):
    """J1.7."""
    desk.charge.using(queue="billing").enqueue(1)
    desk.charge.using(queue="billing", delay=3600).enqueue(2)
    desk.app.pause_queue("mail", create=True)
    billing, mail = [line.split("\t") for line in desk.stdout("queue", "list").splitlines()]
    assert billing[:4] == ["billing", "open", "2", "0"]
    assert billing[4:6] == mail[4:6] == ["", ""]
    assert billing[6].endswith("Z")
    assert billing[7:] == mail[7:] == ["0", "0", "0", "", ""]
    assert mail[:7] == ["mail", "paused", "0", "0", "", "", ""]
    output = desk.read("queue", "list")
    assert output["next_cursor"] is None
    assert [(item["name"], item["paused"], item["waiting"]) for item in output["items"]] == [
        ("billing", False, 2),
        ("mail", True, 0),
    ]


def test_the_last_hour_is_listed_for_pipes_people_and_programs(sqlite_desk):
    """J7.5, J1.7: how many ended and how long they took; columns in which there is nothing to say are not drawn."""
    desk = sqlite_desk
    handles = [desk.charge.using(queue="billing").enqueue(n) for n in range(3)]
    desk.app.pause_queue("mail", create=True)
    with desk.app.worker():
        for handle in handles:
            handle.join(timeout=90)
    billing, mail = [line.split("\t") for line in desk.stdout("queue", "list").splitlines()]
    assert (billing[7:10], mail[7:]) == (["3", "0", "0"], ["0", "0", "0", "", ""])
    assert all(mean.isdigit() for mean in billing[10:])
    hour = desk.read("queue", "list")["items"][0]["last_hour"]
    assert (hour["succeeded"], hour["failed"], hour["retried"]) == (3, 0, 0)
    assert [str(hour["wait_ms"]), str(hour["run_ms"])] == billing[10:]
    head, _, drawn, _ = re.sub(r"\x1b\[[\d;]*m", "", desk.drawn("queue", "list", columns=80)).splitlines()
    assert head.split() == ["queue", "state", "waiting", "running", "done/h", "wait", "run"]
    assert re.match(r"billing  open +0 +0 +3 +[\d.]+ m?s +[\d.]+ m?s$", drawn)


def test_a_paused_queue_is_not_claimed_from_until_it_is_resumed(desk):
    """J1.7, J10.7: through the command, which says how to undo it."""
    desk.charge.using(queue="billing", delay=3600).enqueue(0)
    paused = desk.run("queue", "pause", "billing")
    assert paused.stdout == "queue billing is paused\n"
    assert paused.stderr == "to undo it: windlass queue resume billing\n"
    assert desk.stdout("queue", "pause", "billing") == "queue billing was paused already\n"
    held = desk.charge.using(queue="billing").enqueue(1)
    other = desk.charge.enqueue(2)
    with desk.app.worker():
        other.join(timeout=90)
        assert held.status() is JobStatus.PENDING
        assert desk.stdout("queue", "resume", "billing") == "queue billing is resumed\n"
        until(lambda: held.status() is JobStatus.SUCCEEDED, "the held job to run")
    assert desk.stdout("queue", "resume", "billing") == "queue billing was not paused\n"


@pytest.mark.parametrize("arguments", [("pause",), ("resume",), ("limit", "--rate", "5")])
def test_an_unknown_queue_is_refused_with_a_suggestion(desk, arguments):
    """J10.7: in an incident it is the queue that was not paused."""
    desk.charge.using(queue="billing").enqueue(1)
    result = desk.run("queue", arguments[0], "blling", *arguments[1:])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no queue blling is known, so nothing was changed; did you mean billing?" in result.stderr
    assert ("Pass --create if blling is meant." in result.stderr) is (arguments[0] != "resume")
    assert [item["name"] for item in desk.read("queue", "list")["items"]] == ["billing"]


def test_a_queue_may_be_steered_before_its_first_job(desk):
    """J10.7: by --create, or because a job of the application is declared with it."""
    assert desk.stdout("queue", "pause", "new", "--create") == "queue new is paused\n"
    assert (
        desk.stdout("queue", "limit", "newer", "--rate", "5", "--create") == "queue newer lets through 5 per second\n"
    )
    assert desk.stdout("queue", "pause", "default") == "queue default is paused\n"
    assert [item["name"] for item in desk.read("queue", "list")["items"]] == ["default", "new", "newer"]


def test_limits_are_listed_for_pipes_people_and_programs(sqlite_desk):
    """J1.7, operations.md `queue list`: concurrency and rate, and nothing where there is no limit."""
    desk = sqlite_desk
    for queue in ("billing", "mail"):
        desk.charge.using(queue=queue, delay=3600).enqueue(1)
    desk.app.limit_queue("mail", 3, rate=10, per="minute")
    billing, mail = [line.split("\t") for line in desk.stdout("queue", "list").splitlines()]
    assert (billing[4:6], mail[4:6]) == (["", ""], ["3", "10 per minute"])
    listed = [(item["concurrency"], item["rate"], item["per"]) for item in desk.read("queue", "list")["items"]]
    assert listed == [(None, None, None), (3, 10, "minute")]
    head, _, _, drawn = re.sub(r"\x1b\[[\d;]*m", "", desk.drawn("queue", "list", columns=100)).splitlines()
    assert head.split() == ["queue", "state", "waiting", "running", "at", "a", "time", "rate", "oldest", "due"]
    assert re.match(r"mail +open +1 +0 +3 +10 per minute", drawn)


def test_every_number_has_a_name_in_a_narrow_terminal(sqlite_commands, shop_on):
    """operations.md: tables for people, at 44 columns too."""
    shop = shop_on(sqlite_commands.url)
    shop.enqueue("charge", 1)
    shop.app.limit_queue("default", 3, rate=10)
    folder, url = sqlite_commands.folder, sqlite_commands.url
    terminal = Terminal(folder, url, "queue", "list", "--app", "shop:app", columns=44)
    assert terminal.exit_code() == 0
    first, *facts = terminal.text.splitlines()
    assert first.split() == ["default", "open"]
    printed = " ".join(line.strip() for line in facts)
    assert "waiting 1 · running 0 · at a time 3 · rate 10 per second · oldest due" in printed
    assert max(len(line) for line in terminal.text.splitlines()) <= 44


def test_a_bad_name_is_wrong_usage(sqlite_desk):
    assert sqlite_desk.run("queue", "pause", "a,b").exit_code == 2
    assert sqlite_desk.run("queue", "pause").exit_code == 2
    assert sqlite_desk.read("queue", "list")["items"] == []


def test_people_get_a_table(sqlite_desk):
    sqlite_desk.charge.using(queue="billing").enqueue(1)
    sqlite_desk.app.pause_queue("mail", create=True)
    drawn = re.sub(r"\x1b\[[\d;]*m", "", sqlite_desk.drawn("queue", "list", columns=80))
    head, rule, billing, mail = drawn.splitlines()
    assert head.split() == ["queue", "state", "waiting", "running", "oldest", "due"]
    assert set(rule) == {"─"}
    assert re.match(r"billing  open +1 +0 +(now|\d+ s ago)", billing)
    assert mail.split() == ["mail", "paused", "0", "0"]


@pytest.mark.parametrize(("waiting", "shown"), [(0, "0"), (9_999, "9,999"), (10_000, "10,000+")])
def test_a_bounded_count_is_marked(waiting, shown):
    assert phrases.counted(waiting) == shown
