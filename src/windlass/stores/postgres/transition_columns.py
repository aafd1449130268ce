"""Transitions as arrays, one for each column."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.transition import NO_FAILURE, Transition
from windlass.stores.postgres.text import ids, numbers, texts


class TransitionColumns:
    """Transitions as columns instead of rows, transposed in one call because this is the hot path."""

    def __init__(self, transitions: Sequence[Transition]) -> None:
        values = dict(zip(Transition._fields, zip(*transitions, strict=True), strict=True))
        self.ids, self.fences, self.moves = values["job_id"], values["fence"], values["move"]
        self.outcomes, self.numbers, self.attempts = values["outcome"], values["number"], values["attempts"]
        self.results, self.failures, self.reasons = values["result"], values["failure"], values["reason"]
        self.started, self.ended, self.waits = zip(*values["times"], strict=True)

    def of_successes(self) -> dict[str, str]:
        """Return the arrays of transitions that have all succeeded."""
        return {
            "ids": ids(self.ids),
            "fences": numbers(self.fences),
            "numbers": numbers(self.numbers),
            "started": numbers(self.started),
            "ended": numbers(self.ended),
            "waits": numbers(self.waits),
        }

    def of_all(self) -> dict[str, str]:
        """Return all arrays."""
        failures = [failure or NO_FAILURE for failure in self.failures]
        return {
            **self.of_successes(),
            "outcomes": texts(self.outcomes),
            "attempts": numbers(self.attempts),
            "errors": texts([failure.error or None for failure in failures]),
            "error_classes": texts([failure.error_class or None for failure in failures]),
            "tracebacks": texts([failure.traceback for failure in failures]),
        }
