"""The `windlass` command: one module per noun; rich is imported only where output is drawn."""
