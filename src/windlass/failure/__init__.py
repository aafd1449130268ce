"""What follows a failed attempt: the retry decision, the sanitised error, the dead letter."""
