"""All SQL and all drivers, and nothing else: plans over named statements, run by a database of one dialect."""
