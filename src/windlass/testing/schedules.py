"""Fire schedules by hand, on the clock of a test."""

from __future__ import annotations

from windlass.app import Windlass
from windlass.domain.clock import MICROSECONDS, VirtualClock
from windlass.errors import ConfigurationError
from windlass.parts import Parts
from windlass.publisher import Publisher
from windlass.recurring.reconciliation import Reconciliation
from windlass.recurring.ticker import log_skipped
from windlass.runtime.verbs import Verb, adrive, drive, off_loop
from windlass.stores.plans import ticks


def tick(app: Windlass) -> int:
    """Fire every schedule that is due, as a worker would; return how many runs were stored. `drain` runs them.

    ```python
    advance(app, 3600)
    assert tick(app) == 1  # @app.recurring("0 * * * *")
    assert drain(app).succeeded == 1
    ```

    Declared schedules are stored first, as if a worker had started when the test's clock did. `drain` alone fires
    nothing.
    """
    return drive(_tick(app))


async def atick(app: Windlass) -> int:
    """Async twin of `tick`."""
    return await adrive(_tick(app))


def _tick(app: Windlass) -> Verb[int]:
    if app.has_worker:
        raise ConfigurationError("a worker of this application fires its schedules already; stop it, or do not tick")
    parts: Parts = yield from off_loop(app.check_startable)
    yield from Reconciliation(parts.declared, parts.database).run(_beginning(parts))
    publisher = Publisher(parts.bus, parts.results, parts.clock, parts.local_node)
    late, runs = int(parts.settings.recurring.misfire_after * MICROSECONDS), 0
    while True:
        asked = (ticks.fire, (), late, parts.database.known_queues)
        fired: ticks.Fired = yield parts.database.run, parts.database.arun, asked
        for one in fired.unplannable:
            raise ConfigurationError(f"schedule {one.key} cannot be planned: {one.why}")
        publisher.publish((), fired.effects)
        log_skipped(fired.effects.skipped)
        runs += fired.runs
        if not fired.advanced:
            break
    if runs and parts.inline is not None:
        yield parts.inline.run, parts.inline.arun, ()
    return runs


def _beginning(parts: Parts) -> int | None:
    """Return when the test began; None without a clock of its own."""
    clock = parts.clock
    return min(clock.started, clock.micros()) if isinstance(clock, VirtualClock) else None
