"""`windlass schedule`: what fires when."""
