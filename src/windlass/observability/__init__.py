"""What can be seen of a running node from outside: logs today; metrics and traces are planned."""
