"""Jobs of the other application."""

from tests.crash.programs.bodies import write_down


async def ship(number: int) -> int:
    """Known to the shipping application only."""
    write_down("ran", number)
    return number
