"""`windlass job list|show`, and how jobs are moved by `cancel|pause|resume|retry`."""

import re
import shlex
from datetime import datetime
from itertools import takewhile
from uuid import uuid4

import pytest

from tests.cli.desk import Desk
from tests.cli.terminal import Terminal
from tests.support.waiting import until
from windlass import JobStatus

UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"


def lines(text: str) -> list[list[str]]:
    """Plain output, by its tabs."""
    return [line.split("\t") for line in text.splitlines()]


def ids(page: dict) -> list[str]:
    return [item["id"] for item in page["items"]]


# ------------------------------------------------------------------ list


def test_a_job_is_a_line_with_its_state_and_the_first_line_of_its_error(desk):
    (failed,) = desk.failed(queue="billing", priority=3)
    waiting = desk.charge.using(delay=3600).enqueue(1)
    newest, oldest = lines(desk.stdout("job", "list"))
    assert newest[:6] == [str(waiting.id), "PENDING", "tests.cli.desk:charge", "default", "NORMAL", "0/1"]
    assert newest[7] == ""
    assert oldest[:6] == [failed, "FAILED", "tests.cli.desk:decline", "billing", "HIGH", "1/1"]
    assert oldest[7] == "DoNotRetry: card of invoice 0 was declined"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", oldest[6])


def test_filters_narrow_the_list(desk):
    """api.md: the filters of `find`."""
    tagged = str(desk.charge.using(tags=["import"], queue="billing", business_key="a").enqueue(1).id)
    (failed,) = desk.failed()
    plain = str(desk.charge.using(delay=60).enqueue(2).id)
    for arguments, expected in {
        ("--status", "failed"): [failed],
        ("--queue", "billing"): [tagged],
        ("--tag", "Import"): [tagged],
        ("--key", "a"): [tagged],
        ("--target", "tests.cli.desk:decline"): [failed],
        ("--since", "1h"): [plain, failed, tagged],
        ("--since", "2 d", "-q", "default"): [plain, failed],
        ("--since", "2999-01-01"): [],
    }.items():
        assert ids(desk.read("job", "list", *arguments)) == expected, arguments


def test_the_printed_command_shows_the_next_page(desk):
    """operations.md: lists as `{"items": […], "next_cursor": …}`."""
    made = [str(handle.id) for handle in desk.app.enqueue_many([desk.charge.bind(number) for number in range(5)])]
    first = desk.run("job", "list", "-n", "2", "--since", "1h")
    assert [row[0] for row in lines(first.stdout)] == made[:2:-1]
    output = shlex.split(first.stderr.removeprefix("go on: "))
    assert output[-2] == "--cursor"
    page = desk.read(*output[1:])
    assert ids(page) == made[2:0:-1]
    last = desk.read("job", "list", "-n", "2", "--cursor", page["next_cursor"])
    assert (ids(last), last["next_cursor"]) == (made[:1], None)


def test_json_has_every_field_with_times_in_utc(sqlite_desk):
    desk = sqlite_desk
    handle = desk.charge.using(params={"by": "ops"}, tags=["import"]).enqueue(7, currency="usd")
    desk.work_off(handle)
    (job,) = desk.read("job", "list")["items"]
    assert (job["args"], job["kwargs"], job["result"]) == ([7], {"currency": "usd"}, "charged 7")
    assert (job["status"], job["priority"], job["params"], job["tags"]) == ("SUCCEEDED", 2, {"by": "ops"}, ["import"])
    assert job["created_at"].endswith("Z")
    assert datetime.fromisoformat(job["created_at"]) == desk.app.get(handle.id).created_at


def test_an_empty_list_is_reported_on_stderr(sqlite_desk):
    result = sqlite_desk.run("job", "list", "--status", "RUNNING")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no jobs fit\n")
    assert sqlite_desk.read("job", "list") == {"items": [], "next_cursor": None}


def test_a_wide_terminal_gets_a_table(sqlite_desk):
    (failed,) = sqlite_desk.failed()
    drawn = sqlite_desk.drawn("job", "list", columns=160)
    head, rule, row = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in drawn.splitlines()]
    assert head.split() == ["id", "status", "target", "queue", "priority", "attempts", "enqueued", "error"]
    assert set(rule) == {"─"}
    assert re.match(rf"{failed}  FAILED  tests.cli.desk:decline  default .* (now|\d+ s ago)  DoNotRetry: card", row)
    assert "\x1b[1;31mFAILED" in drawn


def test_a_narrow_terminal_gets_the_same_stacked(sqlite_desk):
    (failed,) = sqlite_desk.failed()
    drawn = re.sub(r"\x1b\[[\d;]*m", "", sqlite_desk.drawn("job", "list", columns=80))
    head, facts, error = drawn.splitlines()
    assert head == f"{failed}  FAILED  tests.cli.desk:decline"
    assert re.fullmatch(r"  queue default · priority NORMAL · attempts 1/1 · enqueued (now|\d+ s ago)", facts)
    assert error == "  DoNotRetry: card of invoice 0 was declined"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--cursor", "nonsense"), "a cursor comes from the page before"),
        (("--since", "yesterday"), "expected an age like 30s, 15m, 2h, 3d"),
        (("--status", "dead"), "'dead' is not one of 'pending'"),
        (("--limit", "1001"), "1<=x<=1000"),
        (("--tga", "x"), "--tag"),
    ],
)
def test_bad_filters_are_wrong_usage(sqlite_desk, arguments, expected):
    result = sqlite_desk.run("job", "list", *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr


# ------------------------------------------------------------------ show


def test_show_prints_everything_and_every_attempt(desk):
    handle = desk.stumble.using(tags=["import"], business_key="order-7").enqueue(7)
    desk.work_off(handle)
    printed = desk.stdout("job", "show", handle.id)
    for part in (
        "tests.cli.desk:stumble(7)\n",
        f"  id: {handle.id}\n",
        "  status: FAILED (retry_exhausted)\n",
        "  error: ValueError: invoice 7 has no address\n",
        "  arguments: [7]\n",
        "  attempts: 3 of 3\n",
        "  tags: import\n",
        "  business key: order-7\n",
        "history:\n1\tretried\t",
        "\n3\tfailed\t",
        "traceback of attempt 3:\n",
    ):
        assert part in printed, part
    output = desk.read("job", "show", handle.id)
    assert [attempt["outcome"] for attempt in output["history"]] == ["retried", "retried", "failed"]
    assert output["error_class"] == "ValueError"
    assert output["finished_at"].endswith("Z")


def test_show_is_drawn_with_a_bar_of_its_progress(sqlite_desk):
    handle = sqlite_desk.export.enqueue(10)
    sqlite_desk.work_off(handle)
    drawn = sqlite_desk.drawn("job", "show", handle.id, columns=100)
    for part in ("╭─", "export(10)", "━" * 20, "100 %, 10 of 10", "SUCCEEDED"):
        assert part in drawn, part
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((now|\d+ s ago)\)", drawn)


def test_an_unknown_id_is_an_error_and_half_an_id_wrong_usage(sqlite_desk):
    unknown = sqlite_desk.run("job", "show", UNKNOWN_ID)
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith(f"Error: no job has the id {UNKNOWN_ID}")
    for wrong in (UNKNOWN_ID[:5], "seventh"):
        half = sqlite_desk.run("job", "show", wrong)
        assert half.exit_code == 2
        assert "a job id is a UUID" in half.stderr
        assert "or at least its first 6 digits" in half.stderr


def test_the_first_digits_of_an_id_will_do_if_only_one_job_has_them(desk):
    """Operations: as everywhere else that ids are long; several candidates are named, and nothing is moved."""
    first, second = (desk.charge.using(delay=60).enqueue(number) for number in range(2))
    pairs = zip(str(first.id), str(second.id), strict=True)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    several = desk.run("job", "cancel", "--yes", str(first.id)[: max(shared, 6)])
    assert (several.exit_code, several.stdout) == (1, "")
    for handle in (first, second):
        assert f"{handle.id}  PENDING  tests.cli.desk:charge" in several.stderr
        assert handle.status() is JobStatus.PENDING
    short = str(first.id)[: shared + 1]
    assert desk.stdout("job", "show", short) == desk.stdout("job", "show", first.id)
    assert desk.stdout("job", "explain", short.upper()) == desk.stdout("job", "explain", first.id)
    assert desk.stdout("job", "pause", short.replace("-", "")) == f"{first.id}\tpaused\n"
    unknown = desk.run("job", "show", "ffffff")
    assert (unknown.exit_code, "no job has an id that begins with ffffff" in unknown.stderr) == (1, True)
    (failed,) = desk.failed()
    assert desk.stdout("dlq", "show", failed[:-1]) == desk.stdout("dlq", "show", failed)


# ------------------------------------------------------------------ cancel, pause, resume, retry


def test_cancel_reports_each_job_and_why_it_was_refused(desk):
    """J2.2: True from PENDING, False from terminal or unknown."""
    (failed,) = desk.failed()
    waiting = str(desk.charge.using(delay=60).enqueue(1).id)
    dry = lines(desk.stdout("job", "cancel", "--dry-run", waiting, failed, code=1))
    assert dry == [[waiting, "would be canceled"], [failed, "would not be canceled: it has ended (FAILED)"]]
    assert desk.app.get(waiting).status is JobStatus.PENDING
    assert desk.stdout("job", "cancel", "--yes", waiting) == f"{waiting}\tcanceled\n"
    assert desk.app.get(waiting).status is JobStatus.CANCELED
    printed = lines(desk.stdout("job", "cancel", "--yes", waiting, failed, UNKNOWN_ID, code=1))
    assert printed == [
        [waiting, "not canceled: it has ended (CANCELED)"],
        [failed, "not canceled: it has ended (FAILED)"],
        [UNKNOWN_ID, "not canceled: no job has this id"],
    ]


def test_canceling_is_refused_without_a_terminal_for_confirmation(desk):
    """J10.7, operations.md: destructive verbs ask, unless `--yes`, of one job too; a dry run counts and names some."""
    waiting = [str(desk.charge.using(tags=["import"]).enqueue(number).id) for number in range(3)]
    dry = desk.run("job", "cancel", "--tag", "import", "--dry-run")
    assert sorted(row[0] for row in lines(dry.stdout)) == waiting
    assert dry.stderr == "3 jobs would be canceled\n"
    for arguments in (waiting, waiting[:1], ["--tag", "import"]):
        refused = desk.run("job", "cancel", *arguments)
        assert refused.exit_code == 2
        assert "pass --yes" in refused.stderr
    assert {desk.app.get(job).status for job in waiting} == {JobStatus.PENDING}
    assert desk.stdout("job", "cancel", "--tag", "import", "--yes") == "canceled 3 jobs\n"
    assert {desk.app.get(job).status for job in waiting} == {JobStatus.CANCELED}
    assert desk.stdout("job", "cancel", "--tag", "import", "--yes") == "canceled 0 jobs\n"


def test_a_terminal_is_asked_for_confirmation(sqlite_commands, shop_on):
    shop = shop_on(sqlite_commands.url)
    waiting = [str(shop.enqueue("charge", number).id) for number in range(2)]
    command = (sqlite_commands.folder, sqlite_commands.url, "job", "cancel", *waiting)
    refused = Terminal(*command)
    refused.shows("Cancel 2 jobs in SQLite .*y/N")
    refused.type("n\n")
    assert refused.exit_code() == 1
    assert shop.app.get(waiting[0]).status is JobStatus.PENDING
    agreed = Terminal(*command)
    agreed.shows("y/N")
    agreed.type("y\n")
    assert agreed.exit_code() == 0
    assert f"{waiting[1]}  canceled" in agreed.text
    assert shop.app.get(waiting[1]).status is JobStatus.CANCELED


@pytest.mark.slow
def test_a_running_job_can_be_canceled_and_not_paused(commands, shop_on):
    """J2.2, J2.3: from another process than the one it runs in."""
    commands.run("migrate", "shop:app")
    worker = commands.start("worker", "shop:app")
    worker.says("^ready")
    shop = shop_on(commands.url)
    handle = shop.enqueue("endless", "begun")
    until((commands.folder / "begun").exists, "the body to begin")
    code, printed = commands.run("job", "pause", str(handle.id), "-a", "shop:app")
    assert (code, printed) == (1, f"{handle.id}\tnot paused: it is running; cancel it, or let it end\n")
    assert commands.run("job", "cancel", str(handle.id), "-y", "-a", "shop:app") == (0, f"{handle.id}\tcanceled\n")
    assert handle.status() is JobStatus.CANCELED
    worker.terminate()
    assert worker.exit_code() == 0, "an endless body that went on would have been forced"


def test_pause_and_resume(desk):
    """J2.3: idempotent from PAUSED; a dead letter goes back to FAILED."""
    (failed,) = desk.failed()
    for _ in range(2):
        assert desk.stdout("job", "pause", failed) == f"{failed}\tpaused\n"
    assert "paused from: FAILED" in desk.stdout("job", "show", failed)
    assert desk.stdout("job", "resume", failed) == f"{failed}\tresumed\n"
    assert desk.stdout("job", "resume", failed, code=1) == f"{failed}\tnot resumed: it is not paused, but FAILED\n"
    done = desk.charge.enqueue(1)
    desk.work_off(done)
    assert desk.stdout("job", "pause", done.id, code=1) == f"{done.id}\tnot paused: it has ended (SUCCEEDED)\n"


def test_retry_by_ids_and_by_filters(desk):
    """J2.4."""
    first, second, third = desk.failed(3, queue="billing")
    assert desk.stdout("job", "retry", first) == f"{first}\tretried\n"
    refusal = f"{first}\tnot retried: only a FAILED job can be, and it is PENDING\n"
    assert desk.stdout("job", "retry", first, code=1) == refusal
    assert desk.stdout("job", "retry", "--all-failed", "--queue", "other") == "retried 0 jobs\n"
    limited = desk.run("job", "retry", "--all-failed", "-q", "billing", "--limit", "1", "--yes")
    assert (limited.stdout, limited.stderr) == ("retried 1 job\n", "there may be more: run it again\n")
    assert desk.app.get(third).status is JobStatus.PENDING
    assert desk.stdout("job", "retry", "--all-failed", "-y") == "retried 1 job\n"
    assert desk.app.get(second).status is JobStatus.PENDING


def test_retrying_all_asks_for_confirmation_and_has_a_dry_run(desk):
    """J10.7: a bulk verb asks, and has `--yes` and `--dry-run`."""
    failed = desk.failed(7)
    refused = desk.run("job", "retry", "--all-failed")
    assert (refused.exit_code, "Retry 7 jobs in" in refused.stderr, "pass --yes" in refused.stderr) == (2, True, True)
    dry = desk.run("job", "retry", "--all-failed", "--dry-run")
    assert (dry.exit_code, dry.stderr) == (0, "7 jobs would be retried\n")
    *sample, more = dry.stdout.splitlines()
    assert ([line.split("\t")[0] for line in sample], more) == (failed[:1:-1], "…")
    assert {desk.app.get(job).status for job in failed} == {JobStatus.FAILED}
    assert desk.stdout("job", "retry", "--all-failed", "--yes") == "retried 7 jobs\n"


def test_a_key_that_is_taken_keeps_one_from_being_retried_and_not_the_others(desk):
    (held,) = desk.failed(business_key="order-7")
    (other,) = desk.failed()
    holder = desk.charge.using(business_key="order-7").enqueue(1)
    printed = lines(desk.stdout("job", "retry", held, other, code=1))
    assert printed == [
        [held, f"not retried: another job, {holder.id}, holds its business key 'order-7'"],
        [other, "retried"],
    ]
    desk.failed(business_key="order-8")
    desk.charge.using(business_key="order-8").enqueue(2)
    refused = desk.run("job", "retry", "--all-failed", "--key", "order-8", "--yes")
    assert refused.exit_code == 1
    assert "business key 'order-8' is held by" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("cancel",), "name jobs by their ids, or by --tag"),
        (("cancel", UNKNOWN_ID, "--tag", "x"), "name jobs by their ids, or by --tag"),
        (("cancel", "--tag", "x" * 65, "--yes"), "64 characters"),
        (("pause",), "Missing argument"),
        (("retry",), "give --all-failed"),
        (("retry", UNKNOWN_ID, "--queue", "x"), "filters and --dry-run belong to --all-failed"),
        (("retry", UNKNOWN_ID, "7"), "a job id is a UUID"),
        (("cancle", UNKNOWN_ID), "did you mean cancel?"),
    ],
)
def test_wrong_usage_moves_nothing(sqlite_desk: Desk, arguments, expected):
    waiting = sqlite_desk.charge.using(tags=["x"]).enqueue(1)
    result = sqlite_desk.run("job", *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert waiting.status() is JobStatus.PENDING


def test_an_app_that_cannot_be_found_is_one_line(sqlite_desk):
    result = sqlite_desk.run("job", "show", uuid4(), "--app", "offce:app")
    assert result.exit_code == 1
    assert "did you mean office:app?" in result.stderr
    assert "Traceback" not in result.stderr
    missing = sqlite_desk.run("job", "list", WINDLASS_APP="")
    assert missing.exit_code == 2
    assert "name it as module:attribute (--app shop:app)" in missing.stderr
