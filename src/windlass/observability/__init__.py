"""What can be seen of a running node from outside: logs, later metrics, traces and health."""
