"""Targets of jobs that other nodes passed over: which of them this node knows."""

from __future__ import annotations

from collections.abc import Callable

from windlass import loggers
from windlass.domain.lanes import needed_targets
from windlass.errors import SerializationError
from windlass.submission.predicates import Predicates
from windlass.submission.registry import Registry
from windlass.submission.target import Known

logger = loggers.logger("windlass.poller")


class KnownTargets:
    """Asks the registry, and keeps the known targets until they are written to the store."""

    def __init__(self, registry: Registry, predicates: Predicates, describe: Callable[[BaseException], str]) -> None:
        self._registry = registry
        self._predicates = predicates
        self._describe = describe
        self._known: set[str] = set()

    def knows(self, target: str) -> bool:
        """Return whether this node takes jobs of a target that others passed over. Never raises.

        Every claim calls it.
        """
        try:
            known = self._resolves(target)
        except SerializationError:
            known = True  # it exists but is broken: its jobs are claimed, and fail with that error
        except Exception as error:  # noqa: BLE001 - a policy of the user's
            logger.error("could not resolve target %s: %s", target, self._describe(error))
            return False
        if known:
            self._known.add(target)
        return known

    def _resolves(self, target: str) -> bool:
        own, predicates = needed_targets(target)
        known = isinstance(self._registry.resolve(own), Known)
        return known and all(isinstance(self._predicates.resolve(one), Known) for one in predicates)

    def take(self) -> set[str]:
        """Return the targets that were found to be known since the last call."""
        known, self._known = self._known, set()
        return known
