"""A module that some machines cannot import: a missing library, a missing secret, a half-finished deploy."""

import os

from tests.crash.programs.bodies import write_down

if os.environ.get("TEST_FRAGILE") == "broken":
    raise RuntimeError("the licence server at licences.example cannot be reached")


def import_customers(number: int) -> int:
    """Allowed by its module's name, not registered."""
    write_down("ran", number)
    return number
