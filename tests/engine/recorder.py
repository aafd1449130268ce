"""What a completer publishes, recorded."""

from collections.abc import Sequence

from windlass.domain.ended import Effects
from windlass.engine.attempt import Attempt


class Recorder:
    """Appends the attempts of every flush to a list, and keeps the effects."""

    def __init__(self, attempts: list[Attempt]) -> None:
        self.attempts = attempts
        self.effects: list[Effects] = []
        self.lost = 0

    def publish(self, batch: Sequence[Attempt], effects: Effects) -> None:
        self.attempts.extend(batch)
        self.effects.append(effects)

    def lost_track(self) -> None:
        self.lost += 1
