"""The objects that instance methods run on."""

import threading
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from windlass.errors import ConfigurationError
from windlass.submission.instances import Instances


class Service:
    pass


class Fake(Service):
    pass


class NeedsGateway:
    def __init__(self, gateway: str, retries: int = 3) -> None:
        self.gateway = gateway


class Empty(list[int]):
    """False as a truth value, and an object like any other."""


def test_a_provided_object_is_used():
    """J1.1: the default is what app.provide(obj) registered."""
    instances = Instances()
    provided = NeedsGateway("stripe")
    instances.provide(provided)
    assert instances.resolve(NeedsGateway) is provided


def test_a_factory_is_called_once_when_first_needed():
    """J1.1: or what app.provide(cls, factory) registered."""
    instances = Instances()
    made: list[NeedsGateway] = []

    def factory() -> NeedsGateway:
        made.append(NeedsGateway("stripe"))
        return made[-1]

    instances.provide(NeedsGateway, factory)
    assert made == []
    assert instances.resolve(NeedsGateway) is instances.resolve(NeedsGateway)
    assert len(made) == 1


def test_a_class_without_a_provider_is_constructed_once():
    """J1.1: else a no-argument constructor, one per process."""
    instances = Instances()
    assert type(instances.resolve(Service)) is Service
    assert instances.resolve(Service) is instances.resolve(Service)


@pytest.mark.parametrize("provided", [Empty(), 0, ""])
def test_objects_that_are_false_are_objects_all_the_same(provided: Any):
    instances = Instances()
    instances.provide(provided)
    assert instances.resolve(type(provided)) is provided


def test_a_subclass_is_used_for_its_base():
    instances = Instances()
    fake = Fake()
    instances.provide(fake)
    assert instances.resolve(Service) is fake
    by_factory = Instances()
    by_factory.provide(Fake, Fake)
    assert by_factory.resolve(Service) is by_factory.resolve(Fake)


def test_the_latest_registration_wins():
    instances = Instances()
    assert type(instances.resolve(Service)) is Service
    instances.provide(fake := Fake())
    assert instances.resolve(Service) is fake
    instances.provide(Service, Fake)
    assert instances.resolve(Service) is not fake
    instances.provide(real := Service())
    assert instances.resolve(Service) is real


def test_a_constructor_with_arguments_is_an_error_with_advice():
    with pytest.raises(ConfigurationError, match=r"NeedsGateway.*'gateway'.*app\.provide\(NeedsGateway\(\.\.\.\)\)"):
        Instances().resolve(NeedsGateway)


def test_an_abstract_class_is_an_error_with_advice():
    class Abstract(ABC):
        @abstractmethod
        def run(self) -> None: ...

    with pytest.raises(ConfigurationError, match="it is abstract; register one"):
        Instances().resolve(Abstract)  # type: ignore[type-abstract]


@pytest.mark.parametrize("arguments", [(Service,), (Service(), Service), (Service, 7)])
def test_an_invalid_provider_is_refused(arguments: tuple[Any, ...]):
    with pytest.raises(ConfigurationError, match="provide takes an object"):
        Instances().provide(*arguments)


def test_many_threads_get_one_object():
    instances = Instances()
    together = threading.Barrier(8)
    made: list[NeedsGateway] = []

    def factory() -> NeedsGateway:
        made.append(NeedsGateway("stripe"))
        return made[-1]

    def resolve() -> NeedsGateway:
        together.wait(90)
        return instances.resolve(NeedsGateway)

    instances.provide(NeedsGateway, factory)
    with ThreadPoolExecutor(8) as threads:
        found = [future.result(90) for future in [threads.submit(resolve) for _ in range(8)]]
    assert made == [found[0]]
    assert all(instance is found[0] for instance in found)


def test_a_factory_may_request_other_objects():
    instances = Instances()
    instances.provide(NeedsGateway, lambda: NeedsGateway(type(instances.resolve(Service)).__name__))
    assert instances.resolve(NeedsGateway).gateway == "Service"


def test_clearing_keeps_what_was_provided():
    instances = Instances()
    instances.provide(fake := Fake())
    made = instances.resolve(NeedsDefault)
    instances.clear()
    assert instances.resolve(Fake) is fake
    assert instances.resolve(NeedsDefault) is not made


class NeedsDefault:
    def __init__(self, gateway: str = "stripe") -> None:
        self.gateway = gateway
