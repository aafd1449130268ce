"""Plans on the caller's own connection, inside the caller's transaction.

`connections` speak to each kind of connection, `terms` say what is particular to each database, `loan` runs a plan: in
a savepoint, so that it is there whole or not at all, and so that whatever fails leaves the caller's transaction usable.
"""
