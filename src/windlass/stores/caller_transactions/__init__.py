"""Plans on the caller's own connection, inside the caller's transaction.

`connections` wraps each kind of connection, `rules` describes how the databases differ, `runner` runs a plan in a
savepoint: it is stored completely or not at all, and a failure leaves the caller's transaction usable.
"""
