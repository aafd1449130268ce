"""The `windlass` command: one module per noun; rich is imported only where something is drawn."""
