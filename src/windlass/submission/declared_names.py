"""Names that a program declares with its jobs: a queue, circuit or resource is known before its first job is stored."""

from collections.abc import Iterator
from typing import Final

from windlass.domain.options import JobOptions
from windlass.errors import SerializationError
from windlass.submission.job_function import Enqueueable
from windlass.submission.registry import Registry
from windlass.submission.target import Known

DEFAULT_QUEUE: Final = "default"


def declared_queues(registry: Registry) -> frozenset[str]:
    """Return the queues of all registered jobs, and the one that jobs have by default."""
    return frozenset({DEFAULT_QUEUE, *_names(registry, "queue")})


def declared_resources(registry: Registry) -> frozenset[str]:
    """Return the resources of all registered jobs."""
    return frozenset(_names(registry, "resource"))


def declared_circuits(registry: Registry) -> frozenset[str]:
    """Return the circuits of all registered jobs, by option or by `@circuit_protected`."""
    return frozenset({*_names(registry, "circuit"), *_marked(registry)})


def _options(registry: Registry) -> Iterator[JobOptions]:
    return (function.options for function in registry.functions if isinstance(function, Enqueueable))


def _names(registry: Registry, option: str) -> Iterator[str]:
    return (name for options in _options(registry) if isinstance(name := getattr(options, option), str))


def _marked(registry: Registry) -> Iterator[str]:
    for target in registry.targets:
        try:
            found = registry.resolve(target)
        except SerializationError:  # its annotations cannot be read: raised when it is enqueued
            continue
        if isinstance(found, Known) and found.circuit is not None:
            yield found.circuit
