"""Bodies of recurring jobs under test: what ran is noted."""

from windlass import JobContext

RAN: list[str] = []
"""What ran, in order."""


def beat() -> None:
    RAN.append("beat")


def sync(where: str) -> str:
    RAN.append(where)
    return where


def with_default(where: str = "eu", *more: str, ctx: JobContext) -> None:
    assert ctx.attempt == 1
    RAN.append(where)


def broken() -> None:
    raise ValueError("always")


def needs(order: int) -> None:
    raise AssertionError(f"refused at decoration, not run for {order}")
