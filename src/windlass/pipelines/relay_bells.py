"""Wakes the relays of this process after commits that have written something for their destinations."""

from __future__ import annotations

from windlass.runtime.service import Bell


class RelayBells:
    """A bell for each destination."""

    def __init__(self) -> None:
        self._bells: dict[str, Bell] = {}

    def of(self, destination: str) -> Bell:
        """Return the bell of a destination, for its relay."""
        return self._bells.setdefault(destination, Bell())

    def ring(self, destination: str) -> None:
        """Wake the relay of a destination, if this process has one; from any thread."""
        bell = self._bells.get(destination)
        if bell is not None:
            bell.ring()

    def ring_all(self) -> None:
        """Wake all relays of this process."""
        for bell in list(self._bells.values()):
            bell.ring()
