"""`windlass execution`: executions of pipelines listed, shown, moved and compared, one module for each command."""
