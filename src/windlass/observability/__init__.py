"""What is visible of a running node from outside: logs today; metrics and traces are planned."""
