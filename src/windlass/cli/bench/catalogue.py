"""Every workload there is, by its key."""

from __future__ import annotations

from typing import Final

from windlass.cli.bench.limited import LIMITED
from windlass.cli.bench.workloads import WORKLOADS

BY_KEY: Final = {workload.key.upper(): workload for workload in (*WORKLOADS, *LIMITED)}
