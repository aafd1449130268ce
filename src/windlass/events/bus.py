"""The event bus: subscriptions, and delivery of events to them."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.domain.clock import monotonic
from windlass.errors import ConfigurationError
from windlass.events.delivery import LoopChannel, SubscriberThread
from windlass.events.subscriber import Caller, Describe, EventDelivery, Subscription
from windlass.events.types import Event

E = TypeVar("E", bound=Event)
R = TypeVar("R")

_MAX_WAITING = 100_000


def _check_event_type(given: object) -> None:
    if not (isinstance(given, type) and issubclass(given, Event)):
        raise ConfigurationError(f"subscribe to an event class, as in on(JobFailed), got {given!r}")


def _class_name(error: BaseException) -> str:
    return type(error).__name__


class EventBus:
    """Delivers events to subscribers one at a time, in the order of publication.

    ```python
    bus = EventBus(describe=sanitizer.sanitize)

    @bus.on(JobDeadLettered)
    def alert(event: JobDeadLettered) -> None: ...
    ```

    Async subscribers are awaited on the loop that publishes; sync ones run on the bus's thread, never on the loop.
    """

    def __init__(self, describe: Describe = _class_name, max_waiting: int = _MAX_WAITING) -> None:
        self._caller = Caller(describe)
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._subscribed: tuple[Subscription, ...] = ()
        self._by_type: dict[type[Event], tuple[Subscription, ...]] = {}
        self._thread = SubscriberThread(self._caller)
        self._channels: dict[asyncio.AbstractEventLoop, LoopChannel] = {}

    def on(self, event_type: type[E], /) -> Callable[[Callable[[E], R]], Callable[[E], R]]:
        """Decorate a function that takes one event, sync or async; a base class includes all its subclasses."""
        _check_event_type(event_type)

        def decorate(function: Callable[[E], R]) -> Callable[[E], R]:
            self.subscribe(event_type, function)
            return function

        return decorate

    def subscribe(self, event_type: type[E], function: Callable[[E], object]) -> Callable[[], None]:
        """Subscribe to an event class and its subclasses; return a function that unsubscribes."""
        _check_event_type(event_type)
        if not callable(function):
            raise ConfigurationError(f"a subscriber is a function that takes one event, got {function!r}")
        subscription = Subscription.of(event_type, function)
        with self._lock:
            self._subscribed = (*self._subscribed, subscription)
            self._by_type = {}

        def unsubscribe() -> None:
            with self._lock:
                self._subscribed = tuple(item for item in self._subscribed if item is not subscription)
                self._by_type = {}

        return unsubscribe

    def wanted(self, event_type: type[Event]) -> bool:
        """Return whether anything subscribes: other events need not be built. Costs a dictionary lookup."""
        subscriptions = self._by_type.get(event_type)
        return bool(self._subscriptions(event_type) if subscriptions is None else subscriptions)

    def publish(self, events: Sequence[Event]) -> None:
        """Have `events` delivered to every subscriber, in this order. Returns at once, on loops and on threads."""
        calls = [
            EventDelivery(subscription, event) for event in events for subscription in self._subscriptions(type(event))
        ]
        if not calls:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._thread.submit(calls)
        else:
            self._channel(loop).push(calls)

    async def drain(self, timeout: float = 5.0) -> bool:
        """Wait up to `timeout` seconds until what was published on this loop, and on threads, is delivered.

        What this loop's subscribers have not taken by then is dropped, with an error in the log, and False is returned.
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
        """End the subscriber thread after its remaining work; publishing again starts a new one."""
        self._thread.close()

    def _subscriptions(self, event_type: type[Event]) -> tuple[Subscription, ...]:
        known = self._by_type
        subscriptions = known.get(event_type)
        if subscriptions is None:
            subscriptions = tuple(item for item in self._subscribed if issubclass(event_type, item.event_type))
            known[event_type] = subscriptions
        return subscriptions

    def _channel(self, loop: asyncio.AbstractEventLoop) -> LoopChannel:
        channel = self._channels.get(loop)
        if channel is None:
            with self._lock:
                for gone in [known for known in self._channels if known.is_closed()]:
                    del self._channels[gone]
                channel = self._channels[loop] = LoopChannel(loop, self._caller, self._thread, self._max_waiting)
        return channel
