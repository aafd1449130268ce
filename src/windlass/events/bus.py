"""The event bus: who listens to what, and telling them."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.domain.clock import monotonic
from windlass.errors import ConfigurationError
from windlass.events.delivery import ListenerThread, LoopChannel
from windlass.events.subscriber import Call, Caller, Describe, Listener
from windlass.events.types import Event

E = TypeVar("E", bound=Event)
R = TypeVar("R")

_MOST_WAITING = 100_000


def _check_event_type(given: object) -> None:
    if not (isinstance(given, type) and issubclass(given, Event)):
        raise ConfigurationError(f"listeners subscribe to an event class, as in on(JobFailed), got {given!r}")


def _class_name(error: BaseException) -> str:
    return type(error).__name__


class EventBus:
    """Tells listeners what has happened, one after another, in the order it was published.

    ```python
    bus = EventBus(describe=sanitizer.sanitize)

    @bus.on(JobDeadLettered)
    def alert(event: JobDeadLettered) -> None: ...
    ```

    Async listeners are awaited on the loop that publishes; sync ones run on one thread of the bus, never on the loop.
    """

    def __init__(self, describe: Describe = _class_name, most_waiting: int = _MOST_WAITING) -> None:
        self._caller = Caller(describe)
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._subscribed: tuple[Listener, ...] = ()
        self._by_type: dict[type[Event], tuple[Listener, ...]] = {}
        self._thread = ListenerThread(self._caller)
        self._channels: dict[asyncio.AbstractEventLoop, LoopChannel] = {}

    def on(self, event_type: type[E], /) -> Callable[[Callable[[E], R]], Callable[[E], R]]:
        """Decorate a function of one event, sync or async; a base class stands for all its subclasses."""
        _check_event_type(event_type)

        def decorate(function: Callable[[E], R]) -> Callable[[E], R]:
            self.subscribe(event_type, function)
            return function

        return decorate

    def subscribe(self, event_type: type[E], function: Callable[[E], object]) -> Callable[[], None]:
        """Listen to an event class and its subclasses; give the function that ends it again."""
        _check_event_type(event_type)
        if not callable(function):
            raise ConfigurationError(f"a listener is a function that takes one event, got {function!r}")
        listener = Listener.of(event_type, function)
        with self._lock:
            self._subscribed = (*self._subscribed, listener)
            self._by_type = {}

        def unsubscribe() -> None:
            with self._lock:
                self._subscribed = tuple(item for item in self._subscribed if item is not listener)
                self._by_type = {}

        return unsubscribe

    def wanted(self, event_type: type[Event]) -> bool:
        """Tell whether anybody listens: an event nobody wants need not be built. Costs a dictionary lookup."""
        listeners = self._by_type.get(event_type)
        return bool(self._listeners(event_type) if listeners is None else listeners)

    def publish(self, events: Sequence[Event]) -> None:
        """Have every listener told of `events`, in this order; returns at once, on loops and on threads without one."""
        calls = [Call(listener, event) for event in events for listener in self._listeners(type(event))]
        if not calls:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._thread.submit(calls)
        else:
            self._channel(loop).push(calls)

    async def drain(self, timeout: float = 5.0) -> bool:
        """Wait until what was published on this loop, and on threads, is delivered; at most `timeout` seconds.

        What this loop's listeners have not taken by then is dropped, with an error in the log, and False is given.
        """
        loop = asyncio.get_running_loop()
        until = monotonic() + timeout
        channel = self._channels.get(loop)
        delivered = channel is None or await channel.drain(timeout)
        if self._thread.idle:
            return delivered
        done, _ = await asyncio.wait({self._thread.submit_from(loop, ())}, timeout=max(until - monotonic(), 0.0))
        return delivered and bool(done)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait, on a thread without a loop, until what was published on such threads is delivered."""
        return self._thread.flush(timeout)

    def close(self) -> None:
        """End the listener thread once it has done its work; publishing again would start a new one."""
        self._thread.close()

    def _listeners(self, event_type: type[Event]) -> tuple[Listener, ...]:
        known = self._by_type
        listeners = known.get(event_type)
        if listeners is None:
            listeners = tuple(item for item in self._subscribed if issubclass(event_type, item.event_type))
            known[event_type] = listeners
        return listeners

    def _channel(self, loop: asyncio.AbstractEventLoop) -> LoopChannel:
        channel = self._channels.get(loop)
        if channel is None:
            with self._lock:
                for gone in [known for known in self._channels if known.is_closed()]:
                    del self._channels[gone]
                channel = self._channels[loop] = LoopChannel(loop, self._caller, self._thread, self._most_waiting)
        return channel
