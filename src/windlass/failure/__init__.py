"""What follows a failed attempt: whether and when it is retried, what of its error is kept, the dead letter."""
