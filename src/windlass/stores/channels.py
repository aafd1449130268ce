"""Channels on which processes are told of what has happened. What comes over one is a hint: the store is asked."""

from typing import Final

WORK: Final = "windlass_work"
"""Channel on which nodes are told of new work."""
DONE: Final = "windlass_done"
"""Channel on which handles are told that jobs ended."""
CANCELED: Final = "windlass_canceled"
"""Channel on which nodes are told that jobs they run were canceled."""
