"""The identity of a node in the cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection

from windlass._version import __version__
from windlass.domain.cluster import NOTHING_DECLARED, Declared
from windlass.domain.identity import new_node_id
from windlass.stores.plans.cluster import NodeRow


class NodeIdentity:
    """The row of a node, which is replaced after its lease was lost. From any thread."""

    def __init__(self, queues: Collection[str] | None, declared: Declared = NOTHING_DECLARED) -> None:
        self._declared = declared
        self._queues = None if queues is None else ",".join(sorted(queues))
        self.row = self._new_row()

    @property
    def id(self) -> str:
        """The node's current id."""
        return self.row.id

    def renew(self) -> NodeRow:
        """Take a new id, under which everything is claimed from now on."""
        self.row = self._new_row()
        return self.row

    def _new_row(self) -> NodeRow:
        host, pid = socket.gethostname(), os.getpid()
        return NodeRow(new_node_id(host, pid), host, pid, __version__, self._queues, *self._declared)
