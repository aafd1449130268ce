"""Plans on the caller's own connection, inside the caller's transaction.

`connections` speak to each kind of connection, `rules` say what is particular to each database, `runner` runs a plan:
in a savepoint, so that it is stored whole or not at all, and a failure leaves the caller's transaction usable.
"""
