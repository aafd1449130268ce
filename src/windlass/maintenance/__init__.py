"""What keeps a cluster healthy: the heartbeat of each node, and the duties that one node at a time does for all.

Every node has a `heartbeat`, and looks for lost nodes (`recovery`, under a lease once there is something to bring
back). The duties, each under a lease of its own: the `sweeper`, which also cancels what is past its `expiry`,
`archive_duty` and `statistics_duty`; features bring more. `permit_keeper` keeps the permits of bodies that outlive a
drain.
"""
