"""Test support: a private store and clock for each test, and running jobs without a worker.

```python
def test_an_order_is_charged(app):         # the fixture of the pytest plugin
    place_order(42)
    assert_enqueued(charge, 42)
    assert drain(app).succeeded == 1
```

`windlass.testing.contract` is the suite that every store passes; `windlass.testing.embedded_postgres` starts a server.
"""

from windlass.domain.clock import VirtualClock
from windlass.testing.drain import Drained, EndlessDrainError, adrain, drain
from windlass.testing.expectations import assert_enqueued, assert_not_enqueued, enqueued
from windlass.testing.inline import inline
from windlass.testing.isolation import NoWorkerError, advance, isolated
from windlass.testing.schedules import atick, tick

__all__ = [
    "Drained",
    "EndlessDrainError",
    "NoWorkerError",
    "VirtualClock",
    "adrain",
    "advance",
    "assert_enqueued",
    "assert_not_enqueued",
    "atick",
    "drain",
    "enqueued",
    "inline",
    "isolated",
    "tick",
]
