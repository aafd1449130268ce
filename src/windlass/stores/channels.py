"""Channels of notifications between processes. A notification is a hint: the receiver queries the store."""

from typing import Final

WORK: Final = "windlass_work"
"""Channel that notifies nodes of new work."""
DONE: Final = "windlass_done"
"""Channel that notifies handles of ended jobs."""
CANCELED: Final = "windlass_canceled"
"""Channel that notifies nodes of canceled jobs."""
SCHEDULES: Final = "windlass_schedules"
"""Channel that notifies nodes of schedules whose next tick has changed."""
