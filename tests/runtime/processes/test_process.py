"""Processes that run jobs: started when needed, kept warm, replaced, killed, and never waited for in vain."""

import asyncio
import json
import multiprocessing.spawn
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import process_bodies as bodies
from tests.support.waiting import until
from windlass.domain.identity import new_job_id
from windlass.domain.job import Claim, Payload
from windlass.errors import WorkerLostError
from windlass.runtime.processes import pool as process_pool
from windlass.runtime.processes.pool import ProcessExecutor, ProcessOptions
from windlass.runtime.threads import BodyExit
from windlass.spi import EncodedResult, Invocation
from windlass.submission.codec import encode_arguments
from windlass.submission.signature import call_spec

OPTIONS = ProcessOptions(jobs=1000, memory_bytes=None, result_bytes=65_536)
MEBIBYTE = 1024 * 1024

Call = Callable[..., Any]


def call(function: Call, *args: Any) -> Invocation:
    target = f"{function.__module__}:{function.__qualname__}"
    text = encode_arguments(call_spec(function), args, {})
    claim = Claim(new_job_id(), 1, "default", target, 0, 0, 2, 0, 0)
    payload = Payload(text, None, None, None, None, None, 0)
    return Invocation(target, function, args, {}, None, claim, payload, "node-1")


class Pool(ProcessExecutor):
    """The executor, with a look inside."""

    async def result(self, function: Call, *args: Any) -> str | None:
        value = await self.run(call(function, *args))
        assert isinstance(value, EncodedResult)
        return value.text

    @property
    def pids(self) -> set[int | None]:
        return {process.pid for process in self._processes}


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = Pool(asyncio.get_running_loop(), OPTIONS)
    yield made
    await made.close()
    assert made.pids == set()


def pool_with(**options: Any) -> Pool:
    return Pool(asyncio.get_running_loop(), OPTIONS._replace(**options))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def written(file: Path) -> list[int]:
    """What a body wrote down, once it has."""
    text = await asyncio.to_thread(until, lambda: file.exists() and file.read_text(), "the body to begin")
    return [int(pid) for pid in str(text).split()]


async def died(*pids: int) -> None:
    await asyncio.to_thread(until, lambda: not any(map(is_alive, pids)), f"processes {pids} to end")


async def test_a_process_is_kept_warm_and_used_again(pool: Pool):
    """J4.2: sync and coroutine bodies share one process, as long as one is enough; it is another one than ours."""
    seen = {await pool.result(function) for function in (bodies.pid, bodies.apid, bodies.pid)}
    assert seen == {str(pid) for pid in pool.pids}
    assert len(seen) == 1
    assert seen != {str(os.getpid())}


async def test_there_are_as_many_processes_as_jobs_run_at_once(pool: Pool, tmp_path: Path):
    """J4.2: started when first needed, and not before."""
    assert pool.pids == set()
    gate = tmp_path / "gate"
    running = [asyncio.ensure_future(pool.result(bodies.wait_for, str(tmp_path / n), str(gate))) for n in "ab"]
    pids = {pid for name in "ab" for pid in await written(tmp_path / name)}
    gate.touch()
    assert await asyncio.gather(*running) == ['"let go"'] * 2
    assert pool.pids == pids
    assert len(pids) == 2
    assert await pool.result(bodies.pid) in {str(pid) for pid in pids}
    assert pool.pids == pids


async def test_a_process_is_replaced_after_its_jobs():
    """J4.2: recycled after N jobs."""
    pool = pool_with(jobs=2)
    pids = [await pool.result(bodies.pid) for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    await died(int(pids[0] or 0), int(pids[2] or 0))
    await pool.close()


async def test_a_process_that_is_no_longer_needed_ends(pool: Pool, monkeypatch: pytest.MonkeyPatch):
    """J4.2: a burst does not leave its processes behind for ever."""
    monkeypatch.setattr(process_pool, "IDLE_SECONDS", 0.1)
    pid = int(await pool.result(bodies.pid) or 0)
    await died(pid)


@pytest.mark.parametrize("body", [bodies.hold, bodies.hold_the_interpreter, bodies.hold_with_company])
async def test_cancelling_kills_the_process_and_all_it_started(pool: Pool, tmp_path: Path, body: Call):
    """J4.5, J2.2: also code that lets no thread of Python run, also programs that the body has started."""
    running = asyncio.ensure_future(pool.run(call(body, str(tmp_path / "pids"))))
    pids = await written(tmp_path / "pids")
    assert all(map(is_alive, pids))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await died(*pids)
    assert await pool.result(bodies.add, 1) == "2"


@pytest.mark.parametrize(
    ("body", "argument", "how"),
    [
        (bodies.leave, 7, "ended with code 7"),
        (bodies.leave, 0, "ended with code 0"),
        (bodies.crash, signal.SIGSEGV.value, "was killed by SIGSEGV"),
        (bodies.crash, signal.SIGKILL.value, "was killed by SIGKILL"),
    ],
)
async def test_a_process_that_dies_by_itself_is_reported(pool: Pool, body: Call, argument: int, how: str):
    """J7.4: no job waits for it, and the next job gets another one."""
    with pytest.raises(WorkerLostError, match=rf"the job's process \d+ {how}"):
        await asyncio.wait_for(pool.run(call(body, argument)), 90)
    assert await pool.result(bodies.add, 1) == "2"


async def test_a_process_that_died_while_idle_is_not_used_again(pool: Pool):
    """J7.4: no job is charged for that."""
    pid = int(await pool.result(bodies.pid) or 0)
    (process,) = pool._processes
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(process.gone, 90)
    assert await pool.result(bodies.pid) != str(pid)


async def test_a_fork_made_by_a_body_does_not_answer_for_it(pool: Pool):
    """J4.3: one job, one answer; a fork that lives on delays no other job."""
    for _ in range(3):
        assert await pool.result(bodies.fork_and_return) == '"parent"'
    with pytest.raises(WorkerLostError, match="ended with code 3"):
        await asyncio.wait_for(pool.run(call(bodies.fork_and_die)), 90)


async def test_a_process_that_sends_an_invalid_message_is_killed(pool: Pool, caplog: pytest.LogCaptureFixture):
    """J7.4: no job waits for an answer that can no longer be understood."""
    with pytest.raises(WorkerLostError, match="was killed by SIGKILL"):
        await asyncio.wait_for(pool.run(call(bodies.send_unexpected_message)), 90)
    assert "sent an invalid message" in caplog.text


async def test_a_process_that_cannot_be_started_is_the_jobs_failure(pool: Pool, monkeypatch: pytest.MonkeyPatch):
    """J4.2: nothing is left behind, and the next job tries again."""
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing.spawn, "get_executable", lambda: "/no/such/python")
        with pytest.raises(FileNotFoundError):
            await pool.run(call(bodies.pid))
        assert pool.pids == set()
    assert await pool.result(bodies.add, 1) == "2"


async def test_a_body_runs_in_a_separate_process(pool: Pool):
    """J4.2: spawned by us, a group of its own, on its main thread; context variables are not the next job's."""
    for _ in range(2):
        seen = json.loads(await pool.result(bodies.describe_process) or "")
        assert seen == {
            "argv": sys.argv,
            "context variable": "untouched",
            "group leader": True,
            "main": None,
            "main thread": True,
            "parent": os.getpid(),
        }


async def test_memory_is_limited_and_running_out_of_it_is_a_failure_like_others():
    """J4.2: MemoryError, reported by the process itself, which is then replaced."""
    pool = pool_with(memory_bytes=256 * MEBIBYTE)
    first = await pool.result(bodies.pid)
    assert await pool.result(bodies.allocate, 20) == str(20 * MEBIBYTE)
    with pytest.raises(BodyExit) as failed:
        await pool.run(call(bodies.allocate, 2000))
    assert isinstance(failed.value.error, MemoryError)
    assert await pool.result(bodies.pid) != first
    await pool.close()


async def test_without_a_limit_a_body_takes_what_it_needs(pool: Pool):
    """J4.2: no limit is the default."""
    assert await pool.result(bodies.allocate, 300) == str(300 * MEBIBYTE)


async def test_a_start_that_its_job_did_not_wait_for_serves_the_next_one(pool: Pool):
    """J4.5: a timeout shorter than a start must not begin anew each time."""
    waiting = asyncio.create_task(pool.run(call(bodies.pid)))
    while not any(pool.pids):  # noqa: ASYNC110 - nothing is signalled when it is spawned
        await asyncio.sleep(0.001)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (pid,) = pool.pids
    assert await pool.result(bodies.pid) == str(pid)


async def test_close_ends_all_processes_whatever_they_do(tmp_path: Path):
    """J7.6: idle ones, one that is being started, and one that runs a body for ever."""
    pool = pool_with()
    running = asyncio.ensure_future(pool.run(call(bodies.hold, str(tmp_path / "pid"))))
    pids = await written(tmp_path / "pid")
    await pool.result(bodies.pid)
    starting = [asyncio.ensure_future(pool.run(call(bodies.pid))) for _ in range(2)]
    await asyncio.sleep(0)
    pids += [pid for pid in pool.pids if pid]
    await pool.close()
    await pool.close()
    await died(*pids)
    endings = await asyncio.wait_for(asyncio.gather(running, *starting, return_exceptions=True), 90)
    assert isinstance(endings[0], WorkerLostError)
