"""Cluster maintenance: the heartbeat of each node, and the duties that one node at a time does for all.

Every node has a `heartbeat`, and checks for lost nodes (`recovery`, under a lease once there is something to recover).
The duties, each under its own lease: the `sweeper`, which also cancels jobs past their `expiry`, `archive_duty` and
`statistics_duty`; features add more. `permit_keeper` holds the permits of bodies that outlive a drain.
"""
