"""Log fields: every record inside a job carries them, whatever the user does with logging."""

import asyncio
import contextvars
import copy
import io
import logging
import logging.handlers
import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from tests.support.running_job import inside_job, job_context
from windlass.context import current_context
from windlass.runtime import logcontext
from windlass.runtime.logcontext import LogFields

JOB = UUID(int=7)
PERCENT = "%(message)s %(job_id)s %(node_id)s %(attempt)s"


@pytest.fixture(autouse=True)
def factory_left_alone() -> Iterator[None]:
    before = logging.getLogRecordFactory()
    yield
    assert logging.getLogRecordFactory() is before


@pytest.fixture
def installed() -> Iterator[None]:
    logcontext.install()
    yield
    logcontext.uninstall()


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.Logger("shop")  # noqa: LOG001 - of this test alone, not in the process's tree
    yield logger
    logger.handlers.clear()


def captured(logger: logging.Logger, style: str = "%", text: str = PERCENT) -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(text, style=style))  # type: ignore[arg-type]
    logger.addHandler(handler)
    return stream


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("%", PERCENT),
        ("{", "{message} {job_id} {node_id} {attempt}"),
        ("$", "$message $job_id $node_id $attempt"),
    ],
)
def test_records_carry_the_fields_of_their_job_in_every_style(log: logging.Logger, style: str, text: str):
    """J4.1: every log record made inside a job carries `job_id, node_id, attempt`, whatever formatter the user has."""
    stream = captured(log, style, text)
    log.info("before")
    with inside_job(JOB, "node-1", 2):
        log.info("inside")
    log.info("after")
    assert stream.getvalue().splitlines() == ["before - - -", f"inside {JOB} node-1 2", "after - - -"]


@pytest.mark.usefixtures("installed")
async def test_each_task_has_its_own_fields(log: logging.Logger):
    """J4.1: jobs that run side by side on the loop do not mix up their fields."""
    stream = captured(log)

    async def body(attempt: int) -> None:
        current_context.set(job_context(JOB, "node-1", attempt))
        await asyncio.sleep(0)
        log.info("line")

    await asyncio.gather(*(asyncio.create_task(body(attempt)) for attempt in range(5)))
    assert sorted(stream.getvalue().splitlines()) == [f"line {JOB} node-1 {attempt}" for attempt in range(5)]
    assert logcontext.current() == LogFields()


@pytest.mark.usefixtures("installed")
async def test_threads_have_the_fields_when_their_context_is_copied(log: logging.Logger):
    """J4.1: also in threads."""
    stream = captured(log)
    with inside_job(JOB, "node-1", 1):
        await asyncio.to_thread(log.info, "to_thread")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, log.info, "copied").result()
    assert stream.getvalue().splitlines() == [f"to_thread {JOB} node-1 1", f"copied {JOB} node-1 1"]


def run_in_thread(function: Callable[..., Any], *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


@pytest.mark.usefixtures("installed")
def test_threads_that_a_body_starts_have_the_fields_of_its_job(log: logging.Logger):
    """J4.1: also in threads: `Thread`, a pool, and threads that these start in turn."""
    stream = captured(log)
    with inside_job(JOB, "node-1", 1), ThreadPoolExecutor(1) as pool:
        run_in_thread(log.info, "thread")
        run_in_thread(run_in_thread, log.info, "thread of a thread")
        pool.submit(log.info, "pool").result()
        pool.submit(run_in_thread, log.info, "thread of a pool").result()
    run_in_thread(log.info, "outside")
    inside = ("thread", "thread of a thread", "pool", "thread of a pool")
    assert stream.getvalue().splitlines() == [*(f"{name} {JOB} node-1 1" for name in inside), "outside - - -"]


@pytest.mark.usefixtures("installed")
def test_the_threads_of_a_shared_pool_have_the_fields_of_the_job_that_submits(log: logging.Logger):
    """J4.1: whichever job has started the thread."""
    stream = captured(log)
    with ThreadPoolExecutor(1) as pool:
        for attempt in (1, 2):
            with inside_job(JOB, "node-1", attempt):
                pool.submit(log.info, "job").result()
        pool.submit(log.info, "nobody").result()
    assert stream.getvalue().splitlines() == [f"job {JOB} node-1 1", f"job {JOB} node-1 2", "nobody - - -"]


@pytest.mark.usefixtures("installed")
def test_a_thread_that_outlives_its_attempt_loses_the_fields(log: logging.Logger):
    """J4.1: what it does then is no part of that attempt."""
    stream = captured(log)
    begun, ended = threading.Event(), threading.Event()

    def outlive() -> None:
        log.info("during")
        begun.set()
        ended.wait(90)
        log.info("after")

    with ThreadPoolExecutor(1) as pool:
        with inside_job(JOB, "node-1", 1):
            context = current_context.get()
            assert context is not None
            thread = threading.Thread(target=outlive)
            thread.start()
            assert begun.wait(90)
            begun.clear()
            going_on = pool.submit(outlive)
            assert begun.wait(90)
        context.over = True
        ended.set()
        thread.join()
        going_on.result()
    assert stream.getvalue().splitlines() == [f"during {JOB} node-1 1"] * 2 + ["after - - -"] * 2


def test_threads_start_unchanged_after_the_factory_is_removed():
    before = (threading.Thread.start, ThreadPoolExecutor.submit)
    logcontext.install()
    assert threading.Thread.start is not before[0]
    assert ThreadPoolExecutor.submit is not before[1]
    logcontext.uninstall()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == before


@pytest.mark.usefixtures("installed")
def test_a_users_own_extra_of_the_same_name_still_works(log: logging.Logger):
    """Python refuses an `extra` that a record already has; ours must not count, or users' programs would break."""
    stream = captured(log)
    with inside_job(JOB, "node-1", 1):
        log.info("own", extra={"attempt": 99, "job_id": "mine"})
        with pytest.raises(KeyError, match="overwrite"):
            log.info("refused", extra={"name": "x"})  # noqa: G101 - the thing under test
    assert stream.getvalue() == "own mine node-1 99\n"


@pytest.mark.usefixtures("installed")
def test_records_can_be_queued_copied_and_pickled(log: logging.Logger):
    box: queue.Queue[logging.LogRecord] = queue.Queue()
    log.addHandler(logging.handlers.QueueHandler(box))
    with inside_job(JOB, "node-1", 1):
        log.info("line")
    record = box.get_nowait()
    for twin in (record, copy.copy(record), pickle.loads(pickle.dumps(record))):
        assert logging.Formatter(PERCENT).format(twin) == f"line {JOB} node-1 1"


@pytest.mark.usefixtures("installed")
def test_records_made_from_dictionaries_are_not_touched():
    """`makeLogRecord` is how records arrive from other processes, with the fields of where they were made."""
    record = logging.makeLogRecord({"msg": "far", "job_id": "theirs", "attempt": 3})
    assert (record.job_id, record.attempt) == ("theirs", 3)  # type: ignore[attr-defined]


def test_the_users_own_record_factory_is_kept_and_outside_of_jobs_its_fields_win(log: logging.Logger):
    plain = logging.getLogRecordFactory()

    def users(*args, **kwargs) -> logging.LogRecord:
        record = plain(*args, **kwargs)
        record.job_id = "users"
        record.site = "berlin"
        return record

    logging.setLogRecordFactory(users)
    logcontext.install()
    try:
        stream = captured(log, text=f"{PERCENT} %(site)s")
        log.info("outside")
        with inside_job(JOB, "node-1", 1):
            log.info("inside")
    finally:
        logcontext.uninstall()
        assert logging.getLogRecordFactory() is users
        logging.setLogRecordFactory(plain)
    assert stream.getvalue().splitlines() == ["outside users - - berlin", f"inside {JOB} node-1 1 berlin"]


def test_the_record_factory_is_installed_once_and_removed_by_the_last_user():
    before = logging.getLogRecordFactory()
    logcontext.install()
    ours = logging.getLogRecordFactory()
    logcontext.install()
    assert logging.getLogRecordFactory() is ours
    logcontext.uninstall()
    assert logging.getLogRecordFactory() is ours
    logcontext.uninstall()
    assert logging.getLogRecordFactory() is before
    logcontext.uninstall()
    assert logging.getLogRecordFactory() is before


def test_uninstalling_keeps_a_record_factory_that_was_built_on_top(log: logging.Logger):
    plain = logging.getLogRecordFactory()
    logcontext.install()
    below = logging.getLogRecordFactory()

    def on_top(*args, **kwargs) -> logging.LogRecord:
        return below(*args, **kwargs)

    logging.setLogRecordFactory(on_top)
    logcontext.uninstall()
    assert logging.getLogRecordFactory() is on_top
    stream = captured(log, text="%(message)s")
    log.info("still works")
    assert stream.getvalue() == "still works\n"
    logging.setLogRecordFactory(plain)


def test_fields_nest_and_go_with_their_job():
    with inside_job(JOB, "node-1", 1):
        with inside_job(JOB, "node-1", 2):
            assert logcontext.current().attempt == 2
        assert logcontext.current() == LogFields(str(JOB), "node-1", 1)
    assert logcontext.current() == LogFields("-", "-", "-")


@pytest.mark.usefixtures("installed")
def test_threads_log_side_by_side(log: logging.Logger):
    stream = captured(log)
    gate = threading.Barrier(4)

    def work(attempt: int) -> None:
        with inside_job(JOB, "node-1", attempt):
            gate.wait()
            for _ in range(50):
                log.info("line")

    threads = [threading.Thread(target=work, args=(attempt,)) for attempt in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = stream.getvalue().splitlines()
    assert {line: lines.count(line) for line in lines} == {f"line {JOB} node-1 {n}": 50 for n in range(4)}
