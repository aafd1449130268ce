"""`windlass dlq list|groups|show|redrive|purge`."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import SHOP
from tests.cli.terminal import Terminal
from windlass import JobStatus, Redrive, Windlass
from windlass.cli.dlq.redrive_progress import counts
from windlass.domain.dead_letter import REASONS

UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"
DECLINE = "tests.cli.desk:decline"
FAILING_SHOP = f"""{SHOP}

@app.job
def refuse(invoice: int) -> None:
    raise ValueError(f"invoice {{invoice}} is refused")
"""


def lines(text: str) -> list[list[str]]:
    """Plain output, by its tabs."""
    return [line.split("\t") for line in text.splitlines()]


def ids(page: dict) -> list[str]:
    return [item["job_id"] for item in page["items"]]


def stumbled(desk) -> str:
    """A dead letter of another kind, after two retries."""
    handle = desk.stumble.using(queue="mail", tags=["import"]).enqueue(7)
    desk.work_off(handle)
    return str(handle.id)


# ------------------------------------------------------------------ list, groups


def test_a_dead_letter_is_a_line_with_its_reason_and_the_first_line_of_its_error(desk):
    """Operations: plain lines away from a terminal."""
    (declined,) = desk.failed()
    other = stumbled(desk)
    newest, oldest = lines(desk.stdout("dlq", "list"))
    assert newest[:3] == [other, "retry_exhausted", "tests.cli.desk:stumble"]
    assert (newest[4], newest[6]) == ("2", "ValueError: invoice 7 has no address")
    assert oldest[:3] == [declined, "non_retryable", DECLINE]
    assert oldest[6] == "DoNotRetry: card of invoice 0 was declined"
    assert re.fullmatch(r"[0-9a-f]{16}", oldest[3])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", oldest[5])


def test_filters_narrow_list_and_groups(desk):
    """J5.7: by an option each, or by --filter."""
    (declined,) = desk.failed()
    other = stumbled(desk)
    fingerprint = desk.app.dead_letters.get(other).fingerprint
    for arguments in (
        ("--queue", "mail"),
        ("--tag", "Import"),
        ("--fingerprint", fingerprint),
        ("--error-class", "ValueError"),
        ("--reason", "retry_exhausted"),
        ("--filter", "reason=retry_exhausted", "--filter", "queue = mail"),
        ("--filter", "error-class=ValueError", "--target", "tests.cli.desk:stumble", "--filter", "since=1h"),
    ):
        assert ids(desk.read("dlq", "list", *arguments)) == [other], arguments
        (group,) = desk.read("dlq", "groups", *arguments)["items"]
        assert (group["fingerprint"], group["count"]) == (fingerprint, 1)
    assert ids(desk.read("dlq", "list", "--until", "1h")) == []
    assert ids(desk.read("dlq", "list", "--since", "1h", "--target", DECLINE)) == [declined]


def test_a_page_shows_the_command_for_the_next_page(desk):
    """api.md: cursors; what was typed is repeated."""
    desk.failed(3)
    first = desk.run("dlq", "list", "--limit", 2, "--filter", f"target={DECLINE}")
    assert len(lines(first.stdout)) == 2
    command = first.stderr.partition("go on: ")[2].strip()
    words = shlex.split(command)[shlex.split(command).index("dlq") :]
    assert len(lines(desk.stdout(*words))) == 1
    page = desk.read("dlq", "list", "--limit", 2)
    assert len(desk.read("dlq", "list", "--cursor", page["next_cursor"])["items"]) == 1


def test_groups_are_a_table_for_people_and_json_for_programs(desk):
    """J5.7, Operations: largest first."""
    desk.failed(2)
    stumbled(desk)
    first, second = lines(desk.stdout("dlq", "groups"))
    assert (first[1:3], second[1]) == (["2", DECLINE], "1")
    page = desk.read("dlq", "groups")
    assert page["next_cursor"] is None
    assert set(page["items"][0]) == {
        *("fingerprint", "target", "error_class", "sample", "count", "first_at", "last_at"),
    }
    drawn = desk.drawn("dlq", "groups")
    assert "first died" in drawn
    assert "fingerprint" in desk.drawn("dlq", "list")


def test_an_empty_list_is_reported_as_empty(desk):
    assert (desk.stdout("dlq", "list"), desk.stdout("dlq", "groups")) == ("", "")
    assert "no dead letters fit" in desk.run("dlq", "groups").stderr
    assert desk.read("dlq", "list") == {"items": [], "next_cursor": None}


# ------------------------------------------------------------------ show


def test_show_prints_the_envelope_the_attempts_and_what_to_do_first(desk):
    """P6.1: first action by reason."""
    job = stumbled(desk)
    text = desk.stdout("dlq", "show", job)
    for expected in (
        "tests.cli.desk:stumble",
        "  reason: retry_exhausted\n",
        "  error: ValueError: invoice 7 has no address\n",
        "  retries: 2\n",
        f"  to start it over: windlass job retry {job}\n",
        f"first action: {REASONS['retry_exhausted'].first_action}",
        "history:",
        "traceback:",
        "in stumble",
    ):
        assert expected in text
    for noise in ("tenant", "execution id", "resource type", "transport", "terminal status", "app."):
        assert noise not in text, noise
    read = desk.read("dlq", "show", job)
    assert (read["job_id"], read["terminal_reason"], len(read["history"])) == (job, "retry_exhausted", 3)
    assert read["first_action"] == REASONS["retry_exhausted"].first_action
    assert "first action" in desk.drawn("dlq", "show", job)


def test_showing_an_unknown_dead_letter_is_an_error(desk):
    assert "no job has the id" in desk.run("dlq", "show", UNKNOWN_ID).stderr
    waiting = desk.charge.using(delay=60).enqueue(1)
    result = desk.run("dlq", "show", waiting.id)
    assert result.exit_code == 1
    assert f"it is not a dead letter, but PENDING; look at it with: windlass job show {waiting.id}" in result.stderr


# ------------------------------------------------------------------ redrive


def test_a_dry_run_names_what_it_would_be_and_touches_nothing(desk):
    """J5.7."""
    first, second, _ = desk.failed(3)
    result = desk.run("dlq", "redrive", "--dry-run", "--limit", 2)
    assert result.stdout.splitlines() == [first, second]
    assert "2 dead letters would be re-driven" in result.stderr
    assert len(desk.app.dead_letters.find()) == 3


def test_a_redrive_asks_for_confirmation_unless_yes_is_given(desk):
    """Operations: destructive verbs ask for confirmation; without a terminal that is wrong usage."""
    desk.failed(2)
    result = desk.run("dlq", "redrive")
    assert (result.exit_code, "Re-drive 2 dead letters in" in result.stderr) == (2, True)
    assert len(desk.app.dead_letters.find()) == 2
    output = desk.stdout("dlq", "redrive", "--yes", "--note", "bank is back", "--filter", f"target={DECLINE}")
    ends = "0 succeeded, 0 failed again, 2 not ended"
    assert output.splitlines() == [f"2 of 2: {ends}", f"re-driven 2 dead letters: {ends}"]
    assert len(desk.app.dead_letters.find()) == 0
    assert "no dead letters fit" in desk.run("dlq", "redrive", "--yes").stderr


def test_a_dead_letter_whose_business_key_is_held_is_named(desk):
    """J5.7: the rest is re-driven, and the exit code says that not all were."""
    (kept,) = desk.failed(business_key="invoice:0")
    desk.failed(1)
    holder = desk.charge.using(business_key="invoice:0", delay=60).enqueue(1)
    output = desk.stdout("dlq", "redrive", "--yes", "--rate", 100, code=1)
    assert "re-driven 1 dead letter" in output
    assert f"{kept}\tnot re-driven: job {holder.id} holds its business key 'invoice:0'" in output


def test_a_terminal_gets_a_progress_bar_and_the_final_counts(sqlite_url: str, tmp_path: Path):
    """Operations: with a confirmation before it."""
    (tmp_path / "shop.py").write_text(FAILING_SHOP)
    app = Windlass(sqlite_url)
    job = app.job(refuse)
    with app.worker():
        handles = [job.enqueue(number) for number in range(3)]
        assert {handle.join(timeout=90) for handle in handles} == {JobStatus.FAILED}
    screens = []
    for answer, code, left in (("n\n", 1, 3), ("y\n", 0, 0)):
        terminal = Terminal(tmp_path, sqlite_url, "dlq", "redrive", "--app", "shop:app")
        terminal.shows(r"Re-drive 3 dead letters in SQLite .*\?")
        terminal.type(answer)
        assert terminal.exit_code() == code
        assert len(app.dead_letters.find()) == left
        screens.append(terminal.text)
    assert re.search(r"re-driving .*3/3.* 0 succeeded, 0 failed again, 3 not ended", screens[-1])
    app.close()


def refuse(invoice: int) -> None:
    raise ValueError(f"invoice {invoice} is refused")


def test_the_line_of_a_redrive_names_what_there_is_to_watch():
    """P10.2: suppression and saturation only where there is any."""
    so_far = Redrive(1_200, 1_200, (), succeeded=1_100, failed_again=2, unfinished=98, suppressed=3, saturation=0.398)
    assert counts(so_far) == "1,100 succeeded, 2 failed again, 98 not ended, 3 suppressed, saturation 40%"
    assert counts(Redrive(1, 1, (), succeeded=1)) == "1 succeeded, 0 failed again"


def test_a_redrive_that_waits_ends_with_the_outcome_of_each(desk):
    """P10.2: --wait; what fails again is counted, and is a dead letter again."""
    desk.failed(2)
    with desk.app.worker():
        output = desk.stdout("dlq", "redrive", "--yes", "--wait")
    assert output.splitlines()[-1] == "re-driven 2 dead letters: 0 succeeded, 2 failed again"
    assert len(desk.app.dead_letters.find()) == 2


# ------------------------------------------------------------------ purge


def test_a_purge_forgets_what_is_old_enough(desk):
    """J5.6: by default what the settings say; it asks."""
    (job,) = desk.failed()
    refused = desk.run("dlq", "purge")
    assert (refused.exit_code, "older than 90 days" in refused.stderr) == (2, True)
    dry = desk.run("dlq", "purge", "--older-than", "0s", "--dry-run")
    assert (dry.exit_code, dry.stdout.split("\t")[0], dry.stderr) == (0, job, "1 dead letter would be deleted\n")
    assert desk.stdout("dlq", "purge", "--yes") == "deleted 0 dead letters\n"
    assert desk.stdout("dlq", "purge", "--older-than", "0s", "--yes") == "deleted 1 dead letter\n"
    assert "no job has the id" in desk.run("dlq", "show", job).stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("list", "--filter", "color=red"), "expected NAME=VALUE with a NAME of created_after"),
        (("list", "--filter", "queue"), "expected NAME=VALUE"),
        (("list", "--filter", "queue=a", "--queue", "b"), "given twice"),
        (("list", "--filter", "queue=a", "--filter", "queue=b"), "given twice"),
        (("list", "--filter", "since=yesterday"), "expected an age"),
        (("list", "--filter", "reason=x"), "reason must be one of"),
        (("list", "--reason", "x"), "retry_exhausted"),
        (("redrive", "--rate", "0"), "x>0"),
        (("redrive", "--limit", "0"), "1<=x<=100000"),
        (("purge", "--older-than", "soon"), "an age like 12h"),
    ],
)
def test_wrong_usage_names_the_expected_value(sqlite_desk, arguments, expected):
    result = sqlite_desk.run("dlq", *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr.replace("\n", " ")


def test_programs_get_every_field(desk):
    """Operations: --json on every read."""
    desk.failed()
    (item,) = json.loads(desk.stdout("dlq", "list", "--json"))["items"]
    assert {"tenant_id", "execution_id", "terminal_reason", "fingerprint", "traceback"} <= item.keys()
