"""Exceptions on their way from a job's process: judged by the worker as if they were its own."""

import json
import subprocess
import sys

import msgspec
import pytest

from tests.support.process_bodies import OrderError, StolenCardError, fail
from windlass.domain.exception_chain import forbidding
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.retry_signals import DoNotRetry, RetryAfter, mark_of
from windlass.runtime.error_classes import classes_of
from windlass.runtime.processes.errors import MAX_LINKS, TRACEBACK, raised, rebuilt
from windlass.runtime.processes.messages import Raised, decode_from_process, framed

KINDS = ["plain", "own", "marked", "chained", "do not retry", "retry after", "group", "exit", "interrupt", "stop"]
KINDS += ["cancel", "odd text", "unprintable", "local"]
sanitizer = DefaultErrorSanitizer()


def error_of(how: str) -> BaseException:
    try:
        fail(how)
    except BaseException as error:  # noqa: BLE001 - all kinds
        return error
    raise AssertionError(how)


def through_the_channel(error: BaseException) -> BaseException:
    message = decode_from_process(framed(raised(error))[4:])
    assert isinstance(message, Raised)
    return rebuilt(message)


@pytest.mark.parametrize("how", KINDS)
def test_an_error_is_stored_as_if_it_had_been_raised_here(how: str):
    """J5.3: class, message, causes, members, traceback."""
    error = error_of(how)
    copy = through_the_channel(error)
    assert sanitizer.sanitize(copy) == sanitizer.sanitize(error)
    assert type(copy).__name__ == type(error).__name__
    assert sanitizer.traceback_tail(copy) == sanitizer.traceback_tail(error)
    assert "process_bodies.py" in getattr(copy, TRACEBACK)


@pytest.mark.parametrize("how", KINDS)
def test_marks_against_a_retry_are_kept(how: str):
    """J5.1: @do_not_retry on the class, DoNotRetry in the chain."""
    error = error_of(how)
    assert type(forbidding(through_the_channel(error))) is type(forbidding(error))


def test_policies_see_the_class_and_its_attributes():
    """J5.1: a class of a loaded module is that class."""
    copy = through_the_channel(error_of("own"))
    assert type(copy) is OrderError
    assert (copy.order, copy.why, copy.args) == (7, "no stock", (7, "no stock"))
    assert type(through_the_channel(error_of("marked"))) is StolenCardError
    assert isinstance(through_the_channel(error_of("local")), ConnectionError)
    chained = through_the_channel(error_of("do not retry"))
    assert isinstance(chained.__cause__, DoNotRetry)


@pytest.mark.parametrize("how", KINDS)
def test_the_names_of_an_errors_classes_are_kept_when_it_is_replaced(how: str):
    """J5.1: `retry_on` and `give_up_on` compare names, and see those of the class that was raised."""
    error = error_of(how)
    own, members = classes_of(through_the_channel(error))
    assert own == classes_of(error).own
    assert set(members) == set(classes_of(error).members)


def test_every_member_of_a_large_group_is_compared():
    """J5.1: also those beyond what is described of it."""
    copy = through_the_channel(ExceptionGroup("many", [*[OSError(n) for n in range(2 * MAX_LINKS)], KeyError()]))
    assert classes_of(copy).any_in({"builtins:KeyError"})
    assert not classes_of(copy).all_in({"builtins:OSError"})


def test_built_in_errors_keep_what_they_are():
    """J5.1: also those that hold more than their arguments."""
    missing = through_the_channel(FileNotFoundError(2, "not here", "x.txt"))
    assert isinstance(missing, FileNotFoundError)
    assert str(missing) == str(FileNotFoundError(2, "not here", "x.txt"))
    undecodable = through_the_channel(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"))
    assert isinstance(undecodable, UnicodeDecodeError)
    assert str(undecodable) == str(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"))
    assert type(through_the_channel(KeyError("x"))) is KeyError


def test_the_delay_of_retry_after_is_kept():
    """J5.2: the exception's own delay."""
    copy = through_the_channel(error_of("retry after"))
    assert isinstance(copy, RetryAfter)
    assert copy.delay.total_seconds() == 0.01


def test_exception_groups_stay_groups():
    """J5.1: members count."""
    copy = through_the_channel(error_of("group"))
    assert isinstance(copy, ExceptionGroup)
    assert [type(member) for member in copy.exceptions] == [ValueError, OrderError]


def test_circular_and_endless_chains_come_to_an_end():
    """J5.3: every exception of a body gets a text."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert str(through_the_channel(first)) == "a"
    top = link = ValueError("top")
    for number in range(500):
        link.__cause__ = ValueError(str(number))
        link = link.__cause__
    assert str(through_the_channel(top)) == "top"


@pytest.mark.parametrize("final", [DoNotRetry("stop"), StolenCardError(7, why="x")], ids=["do not retry", "marked"])
def test_an_exception_that_forbids_retries_is_kept_at_any_depth(final: Exception):
    """J5.1, P4.1: a chain is cut short on its way, and not at what decides over the job."""
    exc: Exception = final
    for number in range(500):
        below, exc = exc, ExceptionGroup("several", [KeyError(), exc]) if number % 2 else OSError(str(number))
        exc.__cause__ = None if number % 2 else below
    assert type(forbidding(through_the_channel(exc))) is type(final)


def test_nothing_is_imported_for_an_error():
    """J1.1: a class whose module is not loaded is stood in for, below its nearest known base, with its marks."""
    program = """
from tests.support.process_bodies import fail
from windlass.runtime.processes.errors import raised
from windlass.runtime.processes.messages import framed
try:
    fail("marked")
except Exception as error:
    print(framed(raised(error))[4:].decode())
"""
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    fields = json.loads(text.replace("tests.support.process_bodies:", "not.loaded.here:"))
    copy = rebuilt(msgspec.convert(fields, Raised))
    assert type(copy).__name__ == "StolenCardError"
    assert type(copy).__module__ == "not.loaded.here"
    assert isinstance(copy, Exception)
    assert (str(copy), mark_of(type(copy))) == ("order 7: stolen", "a stolen card stays stolen")
    assert "not.loaded.here" not in sys.modules
