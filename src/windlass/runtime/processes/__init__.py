"""Processes that run jobs for a worker, and the messages between both sides."""
