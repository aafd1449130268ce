"""`windlass queue`."""

import re

import pytest

from tests.support.waiting import until
from windlass import JobStatus
from windlass.cli import phrases


def test_every_queue_is_listed_with_what_waits_and_runs(desk):
    """J1.7."""
    desk.charge.using(queue="billing").enqueue(1)
    desk.charge.using(queue="billing", delay=3600).enqueue(2)
    desk.app.pause_queue("mail")
    billing, mail = [line.split("\t") for line in desk.told("queue", "list").splitlines()]
    assert billing[:4] == ["billing", "open", "2", "0"]
    assert billing[4].endswith("Z")
    assert billing[5:] == mail[5:] == ["0", "0", "0", "", ""]
    assert mail[:5] == ["mail", "paused", "0", "0", ""]
    told = desk.read("queue", "list")
    assert told["next_cursor"] is None
    assert [(item["name"], item["paused"], item["waiting"]) for item in told["items"]] == [
        ("billing", False, 2),
        ("mail", True, 0),
    ]


def test_the_last_hour_is_listed_for_pipes_people_and_programs(sqlite_desk):
    """J7.5, J1.7: how many ended and how long they took; columns in which there is nothing to say are not drawn."""
    desk = sqlite_desk
    handles = [desk.charge.using(queue="billing").enqueue(n) for n in range(3)]
    desk.app.pause_queue("mail")
    with desk.app.worker():
        for handle in handles:
            handle.join(timeout=20)
    billing, mail = [line.split("\t") for line in desk.told("queue", "list").splitlines()]
    assert (billing[5:8], mail[5:]) == (["3", "0", "0"], ["0", "0", "0", "", ""])
    assert all(mean.isdigit() for mean in billing[8:])
    hour = desk.read("queue", "list")["items"][0]["last_hour"]
    assert (hour["succeeded"], hour["failed"], hour["retried"]) == (3, 0, 0)
    assert [str(hour["wait_ms"]), str(hour["run_ms"])] == billing[8:]
    head, _, drawn, _ = re.sub(r"\x1b\[[\d;]*m", "", desk.drawn("queue", "list", columns=80)).splitlines()
    assert head.split() == ["queue", "state", "waiting", "running", "done/h", "wait", "run"]
    assert re.match(r"billing  open +0 +0 +3 +[\d.]+ m?s +[\d.]+ m?s$", drawn)


def test_a_paused_queue_is_not_claimed_from_until_it_is_resumed(desk):
    """J1.7, through the command."""
    assert desk.told("queue", "pause", "billing") == "queue billing is paused\n"
    assert desk.told("queue", "pause", "billing") == "queue billing was paused already\n"
    held = desk.charge.using(queue="billing").enqueue(1)
    other = desk.charge.enqueue(2)
    with desk.app.worker():
        other.join(timeout=20)
        assert held.status() is JobStatus.PENDING
        assert desk.told("queue", "resume", "billing") == "queue billing is resumed\n"
        until(lambda: held.status() is JobStatus.SUCCEEDED, "the held job to run")
    assert desk.told("queue", "resume", "billing") == "queue billing was not paused\n"


def test_a_name_that_nobody_used_is_remarked_upon(sqlite_desk):
    sqlite_desk.charge.using(queue="billing").enqueue(1)
    result = sqlite_desk.run("queue", "pause", "billng")
    assert result.exit_code == 0
    assert result.stderr == "no job was ever in queue billng; did you mean billing?\n"


def test_a_bad_name_is_wrong_usage(sqlite_desk):
    assert sqlite_desk.run("queue", "pause", "a,b").exit_code == 2
    assert sqlite_desk.run("queue", "pause").exit_code == 2
    assert sqlite_desk.read("queue", "list")["items"] == []


def test_people_get_a_table(sqlite_desk):
    sqlite_desk.charge.using(queue="billing").enqueue(1)
    sqlite_desk.app.pause_queue("mail")
    drawn = re.sub(r"\x1b\[[\d;]*m", "", sqlite_desk.drawn("queue", "list", columns=80))
    head, rule, billing, mail = drawn.splitlines()
    assert head.split() == ["queue", "state", "waiting", "running", "oldest", "due"]
    assert set(rule) == {"─"}
    assert re.match(r"billing  open +1 +0 +(now|\d+ s ago)", billing)
    assert mail.split() == ["mail", "paused", "0", "0"]


@pytest.mark.parametrize(("waiting", "shown"), [(0, "0"), (9_999, "9,999"), (10_000, "10,000+")])
def test_what_was_not_counted_to_its_end_says_so(waiting, shown):
    assert phrases.counted(waiting) == shown
