"""How an execution of a pipeline gets its key."""

from enum import StrEnum


class KeyPolicy(StrEnum):
    """Whether submissions to a pipeline have a key, and where it comes from."""

    OPTIONAL_KEY = "OPTIONAL_KEY"
    """The caller may give one; without one, every submission is a new execution."""
    KEY_REQUIRED = "KEY_REQUIRED"
    """The caller must give one."""
    SERVER_KEY = "SERVER_KEY"
    """It is derived from the tenant and the input; one that the caller gives is ignored."""
