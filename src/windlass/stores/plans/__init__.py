"""The operations of the store, one module per area: plans over the named statements in `sql`."""
