"""Verbs: one generator for callers that block and callers that await."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from windlass.runtime.verbs import Verb, adrive, drive, off_loop, sleep

Driver = Callable[[Verb[Any]], Any]


@pytest.fixture(params=["blocking", "awaiting"])
def run(request: pytest.FixtureRequest) -> Driver:
    return drive if request.param == "blocking" else lambda verb: asyncio.run(adrive(verb))


def double(value: int) -> int:
    return 2 * value


async def adouble(value: int) -> int:
    await asyncio.sleep(0)
    return double(value)


def fail() -> None:
    raise ValueError("refused")


async def afail() -> None:
    await asyncio.sleep(0)
    fail()


def test_a_verb_is_sent_each_answer_and_returns_its_result(run: Driver):
    def verb() -> Verb[int]:
        first = yield double, adouble, (1,)
        second = yield double, adouble, (first,)
        return second + 1

    assert run(verb()) == 5


def test_a_verb_without_requests_is_run_too(run: Driver):
    def verb() -> Verb[str]:
        yield from ()
        return "done"

    assert run(verb()) == "done"


def test_a_verb_can_handle_the_error_of_a_request_and_continue(run: Driver):
    def verb() -> Verb[int]:
        try:
            yield fail, afail, ()
        except ValueError:
            return (yield double, adouble, (21,))
        return 0

    assert run(verb()) == 42


def test_an_error_that_a_verb_does_not_handle_reaches_the_caller(run: Driver):
    ended: list[str] = []

    def verb() -> Verb[None]:
        try:
            yield fail, afail, ()
        finally:
            ended.append("verb")

    with pytest.raises(ValueError, match="refused"):
        run(verb())
    assert ended == ["verb"]


def test_a_function_that_may_block_runs_on_another_thread_for_a_caller_that_awaits():
    here = threading.get_ident()
    assert drive(off_loop(threading.get_ident)) == here
    assert asyncio.run(adrive(off_loop(threading.get_ident))) != here


def test_time_passes_for_either_kind_of_caller(run: Driver):
    assert run(sleep(0)) is None


def test_a_cancelled_caller_ends_the_verb_at_its_request():
    ended: list[str] = []

    def verb() -> Verb[None]:
        try:
            yield from sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cancel() -> None:
        task = asyncio.ensure_future(adrive(verb()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert ended == ["cancelled"]
