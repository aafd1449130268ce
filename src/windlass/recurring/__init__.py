"""Recurring work: schedules that are declared in code or stored by name, and the service that fires them."""
