"""A job with a callback. Both write down that they ran."""

from tests.crash.programs.bodies import write_down
from windlass import JobResult


def work(number: int) -> int:
    write_down("worked", number)
    return number * 2


def follow(result: JobResult) -> None:
    write_down("followed", result.value)


ALL = (work, follow)
