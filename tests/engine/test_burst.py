"""`burst`: run what is due, also what comes due by it, and leave."""

import subprocess
import sys
from pathlib import Path

from tests.engine import jobs
from tests.engine.apps import Apps
from windlass import JobStatus


def test_a_burst_runs_what_is_due_and_what_comes_due_by_it(apps: Apps):
    """J10.4: callbacks, retries without a delay, jobs that jobs enqueue; not what is due later."""
    app = apps(allow=["tests.engine.jobs"])
    jobs.APPS["it"] = app
    note = app.job(jobs.note)
    handles = [note.enqueue(str(number)) for number in range(50)]
    retried = app.job(max_retries=1)(jobs.fail_at_first).enqueue("once")
    later = note.using(delay=3600).enqueue("later")
    paused = note.using(queue="held").enqueue("held")
    app.pause_queue("held")
    assert app.run_worker(concurrency=2, burst=True) == 0
    assert {handle.status() for handle in (*handles, retried)} == {JobStatus.SUCCEEDED}
    assert (later.status(), paused.status()) == (JobStatus.PENDING, JobStatus.PENDING)
    assert app.nodes() == []


def test_a_burst_with_nothing_to_do_ends_at_once(apps: Apps):
    """J10.4: exit code 0."""
    app = apps(allow=["tests.engine.jobs"])
    assert app.run_worker(burst=True) == 0


def test_a_burst_does_not_wait_for_jobs_behind_a_limit(apps: Apps):
    """J10.4, J1.7: what cannot start is not waited for."""
    app = apps(allow=["tests.engine.jobs"])
    handle = app.job(queue="mail")(jobs.note).enqueue("held")
    app.limit_queue("mail", concurrency=0)
    assert app.run_worker(burst=True) == 0
    assert handle.status() is JobStatus.PENDING


PROGRAM = """
from windlass import Windlass

app = Windlass("sqlite:///shop.db")

@app.job
def first(number: int) -> None:
    print("ran", number, flush=True)
    if number:
        first.enqueue(number - 1)

if __name__ == "__main__":
    first.enqueue(3)
"""


def test_windlass_worker_burst_follows_a_chain_of_jobs_to_its_end(tmp_path: Path):
    """J10.4: `windlass worker --burst`, also with several processes."""
    (tmp_path / "shop.py").write_text(PROGRAM)
    for options in (["--burst"], ["--burst", "--processes", "2"]):
        subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, check=True, timeout=300)
        command = [sys.executable, "-m", "windlass", "worker", "shop:app", *options]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        lines = [line for line in ran.stdout.splitlines() if line.startswith("ran")]
        assert lines == ["ran 3", "ran 2", "ran 1", "ran 0"]
