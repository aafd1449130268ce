"""The contract of every store, as tests to inherit: run a new store, or a new version of a server, through it.

A test module names its store in fixtures and inherits the classes; pytest then collects every rule of the contract.

```python
# tests/test_my_store.py
import pytest
from windlass.domain.clock import VirtualClock
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database
from windlass.testing import contract

@pytest.fixture
def clock():
    return VirtualClock()

@pytest.fixture
def empty_store(clock, tmp_path):                       # a database without tables
    database = open_database(f"sqlite:///{tmp_path}/jobs.db", clock)
    yield database
    database.close()

@pytest.fixture
def store(empty_store):                                 # the same, with tables and no rows
    migrate(empty_store)
    return empty_store

class TestSubmitting(contract.SubmissionContract): ...
class TestClaiming(contract.ClaimsContract): ...
```

The store must follow the `clock` fixture: time moves only when a test moves it.
"""

import pytest

# Before the modules are imported, so that their asserts are rewritten like those of a test file.
_PARTS = (
    "archive",
    "batches",
    "circuits",
    "claims",
    "cluster",
    "completion",
    "dead_letters",
    "expiry",
    "external_waits",
    "flow_archive",
    "flow_branches",
    "flow_checks",
    "flow_counts",
    "flow_revival",
    "flow_setup",
    "flows",
    "follow_ups",
    "gate_setup",
    "gates",
    "keys",
    "lanes",
    "leases",
    "limits",
    "migrations",
    "moves",
    "order",
    "plan_runs",
    "progress_reports",
    "publications",
    "reads",
    "schedule_declarations",
    "schedule_setup",
    "schedule_ticks",
    "signals",
    "statistics",
    "submission",
    "triage",
    "trusted_claims",
    "workbench",
)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from windlass.testing.contract.archive import ArchiveContract  # noqa: E402 - see above
from windlass.testing.contract.batches import BatchesContract  # noqa: E402
from windlass.testing.contract.circuits import CircuitsContract  # noqa: E402 - see above
from windlass.testing.contract.claims import ClaimsContract  # noqa: E402
from windlass.testing.contract.cluster import ClusterContract  # noqa: E402
from windlass.testing.contract.completion import CompletionContract  # noqa: E402
from windlass.testing.contract.dead_letters import DeadLettersContract  # noqa: E402 - see above
from windlass.testing.contract.expiry import ExpiryContract  # noqa: E402
from windlass.testing.contract.external_waits import ExternalWaitsContract  # noqa: E402
from windlass.testing.contract.flow_archive import FlowArchiveContract  # noqa: E402
from windlass.testing.contract.flow_branches import FlowBranchesContract  # noqa: E402
from windlass.testing.contract.flow_checks import FlowChecksContract  # noqa: E402
from windlass.testing.contract.flow_counts import FlowCountsContract  # noqa: E402
from windlass.testing.contract.flow_revival import FlowRevivalContract  # noqa: E402
from windlass.testing.contract.flows import FlowsContract  # noqa: E402
from windlass.testing.contract.follow_ups import FollowUpsContract  # noqa: E402
from windlass.testing.contract.gates import GatesContract  # noqa: E402
from windlass.testing.contract.keys import KeysContract  # noqa: E402
from windlass.testing.contract.lanes import LanesContract  # noqa: E402
from windlass.testing.contract.leases import LeasesContract  # noqa: E402
from windlass.testing.contract.limits import LimitsContract  # noqa: E402
from windlass.testing.contract.migrations import MigrationsContract  # noqa: E402
from windlass.testing.contract.moves import MovesContract  # noqa: E402
from windlass.testing.contract.order import OrderContract  # noqa: E402
from windlass.testing.contract.plan_runs import PlanRunsContract  # noqa: E402
from windlass.testing.contract.progress_reports import ProgressReportsContract  # noqa: E402
from windlass.testing.contract.publications import PublicationsContract  # noqa: E402
from windlass.testing.contract.reads import ReadsContract  # noqa: E402
from windlass.testing.contract.schedule_declarations import ScheduleDeclarationsContract  # noqa: E402
from windlass.testing.contract.schedule_ticks import ScheduleTicksContract  # noqa: E402
from windlass.testing.contract.signals import SignalsContract  # noqa: E402
from windlass.testing.contract.statistics import StatisticsContract  # noqa: E402
from windlass.testing.contract.submission import SubmissionContract  # noqa: E402
from windlass.testing.contract.triage import TriageContract  # noqa: E402
from windlass.testing.contract.trusted_claims import TrustedClaimsContract  # noqa: E402
from windlass.testing.contract.workbench import Workbench  # noqa: E402

__all__ = [
    "ArchiveContract",
    "BatchesContract",
    "CircuitsContract",
    "ClaimsContract",
    "ClusterContract",
    "CompletionContract",
    "DeadLettersContract",
    "ExpiryContract",
    "ExternalWaitsContract",
    "FlowArchiveContract",
    "FlowBranchesContract",
    "FlowChecksContract",
    "FlowCountsContract",
    "FlowRevivalContract",
    "FlowsContract",
    "FollowUpsContract",
    "GatesContract",
    "KeysContract",
    "LanesContract",
    "LeasesContract",
    "LimitsContract",
    "MigrationsContract",
    "MovesContract",
    "OrderContract",
    "PlanRunsContract",
    "ProgressReportsContract",
    "PublicationsContract",
    "ReadsContract",
    "ScheduleDeclarationsContract",
    "ScheduleTicksContract",
    "SignalsContract",
    "StatisticsContract",
    "SubmissionContract",
    "TriageContract",
    "TrustedClaimsContract",
    "Workbench",
]
