"""`windlass schedule`."""

import json

import pytest
from click.testing import CliRunner

from windlass import Overlap, every
from windlass.cli.main import main


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command; its exit code, and what it wrote to standard output and standard error."""
    done = CliRunner().invoke(main, ["schedule", *arguments])
    return done.exit_code, done.stdout, done.stderr


class TestPreview:
    """`windlass schedule preview`."""

    def test_the_next_times_are_printed_in_the_zone_and_in_utc(self):
        """J9.1: those that a clock change moves are marked."""
        code, out, error = run(
            "preview", "0 30 2 * * ?", "--zone", "Europe/Berlin", "--from", "2027-03-27", "--count", "3"
        )
        assert code == 0
        assert out.splitlines() == [
            "2027-03-27T02:30:00+01:00\t2027-03-27T01:30:00Z\t",
            "2027-03-28T03:00:00+02:00\t2027-03-28T01:00:00Z\tmoved from 02:30, which does not exist",
            "2027-03-29T02:30:00+02:00\t2027-03-29T00:30:00Z\t",
        ]
        assert error == "at 02:30:00 every day (Europe/Berlin)\n"

    def test_ten_times_from_now_are_printed_by_default(self):
        code, out, error = run("preview", "*/5 * * * *")
        assert code == 0
        assert len(out.splitlines()) == 10
        assert error == "every 5 minutes (UTC)\n"

    def test_an_interval_is_counted_from_the_given_time(self):
        """J9.1."""
        code, out, error = run("preview", "every(hours=6)", "--from", "2027-03-27T01:00:00+01:00", "-n", "2")
        assert code == 0
        assert [line.split("\t")[1] for line in out.splitlines()] == ["2027-03-27T06:00:00Z", "2027-03-27T12:00:00Z"]
        assert error == "every 6 hours (UTC)\n"

    def test_programs_get_json(self):
        code, out, _ = run(
            "preview", "0 9 * * MON", "--zone", "Asia/Kolkata", "--from", "2027-03-27", "-n", "1", "--json"
        )
        assert code == 0
        assert json.loads(out) == {
            "expression": "0 9 * * MON",
            "explanation": "at 09:00 on Monday",
            "zone": "Asia/Kolkata",
            "items": [{"at": "2027-03-29T03:30:00Z", "wall": "2027-03-29T09:00:00+05:30", "note": ""}],
        }

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (("61 * * * *",), 2, "its minute takes 0-59"),
            (("0 2 * * *", "--zone", "Europe/Berln"), 2, "did you mean 'Europe/Berlin'?"),
            (("0 2 * * *", "--from", "soon"), 2, "expected a time like 2030-03-30"),
            (("every(months=1)",), 2, "expected an interval like"),
            (("0 0 2 1 1 ? 2020",), 1, "does not fire after"),
            (("\x1b[31m",), 2, "it needs 5 fields"),
        ],
    )
    def test_an_expression_that_is_invalid_or_never_fires_is_an_error(
        self, arguments: tuple[str, ...], code: int, says: str
    ):
        """J9.1."""
        exit_code, out, error = run("preview", *arguments)
        assert exit_code == code
        assert out == ""
        assert says in error
        assert "\x1b" not in error

    def test_times_outside_the_calendar_are_no_traceback(self):
        code, _, error = run("preview", "0 2 * * *", "--from", "9999-12-31T23:00")
        assert code == 1
        assert "does not fire after" in error


class TestSteering:
    """`windlass schedule list|show|pause|resume|trigger|remove`."""

    def test_schedules_are_listed_with_their_next_times(self, desk):
        """J9.4: for pipes and programs."""
        assert desk.run("schedule", "list").stderr == (
            "there is no schedule; declared ones are stored when a worker starts\n"
        )
        desk.app.schedule("hourly", every(hours=1), desk.charge.bind(7), overlap=Overlap.SKIP)
        desk.app.schedule("nightly", "0 2 * * *", desk.charge.bind(8), zone="Europe/Berlin")
        desk.app.schedules.pause("nightly")
        hourly, nightly = [line.split("\t") for line in desk.stdout("schedule", "list").splitlines()]
        assert hourly[:4] == ["hourly", "active", "every(hours=1)", "UTC"]
        assert hourly[4].endswith("Z")
        assert hourly[5:] == ["", "SKIP", "CATCH_UP", "0", "tests.cli.desk:charge"]
        assert nightly[:5] == ["nightly", "paused", "0 2 * * *", "Europe/Berlin", ""]
        items = desk.read("schedule", "list")["items"]
        assert [(item["key"], item["paused"], item["overlap"]) for item in items] == [
            ("hourly", False, "SKIP"),
            ("nightly", True, "ALLOW"),
        ]

    def test_a_schedule_is_described_in_words(self, sqlite_desk):
        """J9.4: an unknown one with the nearest."""
        desk = sqlite_desk
        desk.app.schedule("nightly", "0 2 * * *", desk.charge.bind(8), zone="Europe/Berlin")
        shown = desk.stdout("schedule", "show", "nightly")
        assert "times: 0 2 * * * (at 02:00 every day)" in shown
        assert "runs: tests.cli.desk:charge" in shown
        assert desk.read("schedule", "show", "nightly")["explanation"] == "at 02:00 every day"
        refused = desk.run("schedule", "show", "nightlly")
        assert (refused.exit_code, "did you mean nightly?" in refused.stderr) == (1, True)

    def test_a_schedule_is_paused_resumed_triggered_and_removed(self, desk):
        """J9.3, J9.4, J10.7: removing asks."""
        desk.app.schedule("hourly", every(hours=1), desk.charge.bind(7))
        paused = desk.run("schedule", "pause", "hourly")
        assert (paused.stdout, paused.stderr) == (
            "schedule hourly is paused\n",
            "to undo it: windlass schedule resume hourly\n",
        )
        job = desk.stdout("schedule", "trigger", "hourly").strip()
        assert desk.app.get(job).args == (7,)
        assert desk.read("schedule", "trigger", "hourly")["job_id"] != job
        assert desk.stdout("schedule", "resume", "hourly").startswith("schedule hourly is active; its next tick is at ")
        assert "pass --yes" in desk.run("schedule", "remove", "hourly").stderr
        assert desk.stdout("schedule", "remove", "hourly", "--yes") == "schedule hourly is removed\n"
        for verb in ("pause", "resume", "trigger", "remove"):
            assert "no schedule hourly is known" in desk.run("schedule", verb, "hourly").stderr

    def test_a_declared_schedule_is_not_removed(self, sqlite_desk):
        """J9.4: with the reason, while a worker that declares it runs."""
        sqlite_desk.app.recurring("0 2 * * *", key="nightly")(sqlite_desk.app.job(beat))
        with sqlite_desk.app.worker():
            refused = sqlite_desk.run("schedule", "remove", "nightly", "--yes")
        assert (refused.exit_code, "take it out of the code" in refused.stderr) == (1, True)


def beat() -> None:
    raise AssertionError("it never runs here")
