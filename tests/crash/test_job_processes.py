"""The processes of process jobs when their worker is killed, and when a whole process group is stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import process_bodies as bodies
from tests.support.programs import ROOT, SHORT_LEASES, Programs
from tests.support.waiting import until
from windlass import JobStatus, Windlass


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url, allow=[bodies.__name__])
    application.migrate()
    yield application
    application.close()


def enqueue(app: Windlass, body: Any, *args: Any) -> Any:
    return app.bind(body, *args).using(executor="process").enqueue()


def pids_in(file: Path) -> list[int]:
    text = until(lambda: file.exists() and file.read_text(), "the body to begin")
    return [int(pid) for pid in str(text).split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int]) -> None:
    until(lambda: not any(map(is_alive, pids)), f"processes {pids} to end")


def test_job_processes_end_with_their_killed_worker(app: Windlass, store_url: str, programs: Programs, tmp_path: Path):
    """J4.2, J7.4: SIGKILL of the worker; what it ran dies within a moment, and the job is finished by another one."""
    first = programs.start("process_worker", store_url)
    killed = first.node
    stubborn = enqueue(app, bodies.hold_the_interpreter, str(tmp_path / "stubborn"))
    company = enqueue(app, bodies.hold_with_company, str(tmp_path / "company"))
    handle = enqueue(app, bodies.wait_for, str(tmp_path / "began"), str(programs.gate))
    pids = [pid for name in ("stubborn", "company", "began") for pid in pids_in(tmp_path / name)]
    assert len(pids) == 4
    first.kill()
    gone(pids)
    assert stubborn.cancel()
    assert company.cancel()
    programs.open_gate()
    second = programs.start("process_worker", store_url, environ=SHORT_LEASES)
    assert second.node != killed
    assert handle.result(90) == "let go"
    job = app.get(handle.id)
    assert (job.attempts, job.crash_count) == (1, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_to_all_lets_a_process_job_finish(sqlite_url: str, programs: Programs, tmp_path: Path, number: int):
    """J7.6: the worker drains, its processes go on until their jobs have ended, and then end too."""
    app = Windlass(sqlite_url, allow=[bodies.__name__])
    worker = programs.start("process_worker", sqlite_url)
    worker.says("^ready")
    handle = enqueue(app, bodies.wait_for, str(tmp_path / "began"), str(programs.gate))
    pids = pids_in(tmp_path / "began")
    for pid in (worker.pid, *pids):
        os.kill(pid, number)
    worker.says("draining")
    assert all(map(is_alive, pids))
    programs.open_gate()
    assert worker.exit_code() == 0
    gone(pids)
    assert app.get(handle.id).status is JobStatus.SUCCEEDED
    app.close()


def test_a_second_signal_kills_the_processes_and_releases_their_jobs(
    sqlite_url: str, programs: Programs, tmp_path: Path
):
    """J7.6: forced, exit code 3, no attempt spent."""
    app = Windlass(sqlite_url, allow=[bodies.__name__])
    worker = programs.start("process_worker", sqlite_url)
    worker.says("^ready")
    handle = enqueue(app, bodies.hold, str(tmp_path / "pid"))
    pids = pids_in(tmp_path / "pid")
    worker.terminate()
    worker.says("draining")
    worker.terminate()
    assert worker.exit_code() == 3
    gone(pids)
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.crash_count) == (JobStatus.PENDING, 0, 0)
    app.close()


WATCHED = """
import os, subprocess, sys
end, ours = os.pipe()
child = '''
import os, subprocess, sys, threading
from windlass.runtime.processes.lifetime import die_with_the_worker
die_with_the_worker(int(sys.argv[1]), by_kernel=sys.argv[2] == "True")
company = subprocess.Popen(["sleep", "600"])
print(os.getpid(), company.pid, flush=True)
threading.Event().wait()
'''
subprocess.Popen([sys.executable, "-c", child, str(end), sys.argv[1]], pass_fds=(end,), process_group=0).wait()
"""


@pytest.mark.parametrize("by_kernel", [True, False])
def test_both_ways_to_end_with_the_worker_work(by_kernel: bool):
    """J4.2: by a signal of the kernel on Linux, by a thread elsewhere; programs that a body started die too."""
    command = [sys.executable, "-c", WATCHED, str(by_kernel)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as worker:
        assert worker.stdout is not None
        pids = [int(pid) for pid in worker.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        worker.kill()
        gone(pids)
