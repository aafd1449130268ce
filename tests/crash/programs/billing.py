"""Jobs of one of two applications that share a store."""

from tests.crash.programs.bodies import write_down


def charge(number: int) -> int:
    """Known to the billing application only."""
    write_down("ran", number)
    return number
