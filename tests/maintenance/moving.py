"""Applications of one store and one clock, whose duties look often."""

from typing import Any

from tests.engine.apps import Apps
from tests.support.facts import one, rows
from windlass import Clock, JobsSettings, NodeSettings, Settings, Windlass
from windlass.domain.clock import VirtualClock

DAY = 86_400
OFTEN = 0.05


class Moving(Apps):
    """Makes applications by one clock, and closes them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.clock = VirtualClock()

    def app(self, clock: Clock | None = None, **jobs: Any) -> Windlass:
        """An application with settings of its own for jobs; its duties come round often."""
        settings = Settings(
            jobs=JobsSettings(**{"archive_interval": OFTEN, **jobs}),
            node=NodeSettings(
                sweep_interval=OFTEN, recovery_interval=OFTEN, statistics_interval=OFTEN, heartbeat_interval=0.5
            ),
        )
        return self(settings=settings, clock=clock or self.clock)

    def later(self) -> bool:
        """A moment on, so that duties come round again: a pass may have been under way as the clock was moved."""
        self.clock.advance(1)
        return True

    def archived(self) -> set[str]:
        """Ids in the archive."""
        return {str(job) for (job,) in rows(self.url, "SELECT id FROM windlass_archive")}

    def count(self, table: str) -> int:
        """Rows of a table."""
        return int(one(self.url, f"SELECT count(*) FROM windlass_{table}"))
