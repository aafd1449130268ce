"""The objects that instance methods run on, one per class and process."""

import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from windlass.errors import ConfigurationError
from windlass.submission.error_text import short

_T = TypeVar("_T")
_MISSING: Any = object()


class Instances:
    """The default `InstanceResolver`: what was provided, else an object from the class's no-argument constructor.

    ```python
    instances = Instances()
    instances.provide(PaymentService(gateway))              # this very object
    instances.provide(Mailer, lambda: Mailer(connect()))    # made when first needed, then kept
    instances.resolve(PaymentService).charge(7)
    ```
    """

    def __init__(self) -> None:
        self._provided: dict[type, object] = {}
        self._factories: dict[type, Callable[[], object]] = {}
        self._made: dict[type, object] = {}
        # One reentrant lock for all: factories may need other objects, in any order, without a deadlock.
        self._lock = threading.RLock()

    def provide(self, what: object, factory: Callable[[], object] = _MISSING) -> None:
        """Register an object for its class, or a factory for a class; the latest registration wins."""
        with self._lock:
            if factory is _MISSING:
                self._provide_object(what)
            else:
                self._provide_factory(what, factory)

    def _provide_object(self, instance: object) -> None:
        cls = type(instance)
        if isinstance(instance, type):
            name = instance.__name__
            raise ConfigurationError(
                f"provide takes an object, or a class and a factory; got only the class {name}: "
                f"write provide({name}(...)) or provide({name}, factory)"
            )
        self._forget(cls)
        self._provided[cls] = instance

    def _provide_factory(self, cls: object, factory: Callable[[], object]) -> None:
        if not isinstance(cls, type) or not callable(factory):
            raise ConfigurationError(
                "provide takes an object, or a class and a factory without arguments; "
                f"got {short(cls)} and {short(factory)}"
            )
        self._forget(cls)
        self._factories[cls] = factory

    def _forget(self, cls: type) -> None:
        self._provided.pop(cls, None)
        self._factories.pop(cls, None)
        for known in [known for known in self._made if issubclass(cls, known)]:
            del self._made[known]

    def resolve(self, cls: type[_T], /) -> _T:
        """Return the object for `cls`: provided for it or a subclass, or created once and kept."""
        known = self._made.get(cls, _MISSING)
        if known is _MISSING:
            with self._lock:
                known = self._made.get(cls, _MISSING)
                if known is _MISSING:
                    known = self._made[cls] = self._find(cls)
        return cast("_T", known)

    def _find(self, cls: type) -> object:
        if cls in self._provided:
            return self._provided[cls]
        if cls in self._factories:
            return self._factories[cls]()
        for stand_in in (*self._provided, *self._factories):
            if issubclass(stand_in, cls):
                return self.resolve(stand_in)
        return _construct(cls)

    @property
    def provides(self) -> bool:
        """Whether anything was provided."""
        return bool(self._provided or self._factories)

    def clear(self) -> None:
        """Drop the objects created here; provided ones stay."""
        with self._lock:
            self._made.clear()


def _construct(cls: type) -> object:
    name = cls.__name__
    how = f"register one with app.provide({name}(...)) or app.provide({name}, factory)"
    if inspect.isabstract(cls):
        raise ConfigurationError(f"cannot make a {name} to run its job on: it is abstract; {how}")
    try:
        inspect.signature(cls).bind()
    except TypeError as error:
        raise ConfigurationError(f"cannot make a {name} to run its job on: {error}; {how}") from None
    except ValueError:  # some built-in bases have no signature: only the call shows whether it works
        pass
    return cls()
