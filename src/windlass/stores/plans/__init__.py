"""What is asked of a store, one module for each area: plans over the named statements in `sql`."""
