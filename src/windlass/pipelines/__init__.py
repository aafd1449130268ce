"""Pipelines: typed steps, declared in code, that run as durable executions."""
