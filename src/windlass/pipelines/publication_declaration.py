"""The declaration of a publication: its name, the keys of its items, and destinations outside that receive them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from windlass.domain.keys import check_key
from windlass.errors import ConfigurationError, InvalidOptionError
from windlass.pipelines.outlets import checked_outlet
from windlass.pipelines.pipeline_options import MAX_NAME, check_label
from windlass.pipelines.step_types import type_name
from windlass.pipelines.type_rules import Stream, TypeShare, share
from windlass.spi import Outlet

KeyFunction = Callable[[Any], str | int | UUID]


class Publication(NamedTuple):
    """What a pipeline publishes its last items as."""

    name: str
    key: KeyFunction | None
    to: Mapping[str, Outlet]
    """Destinations outside of the database, by the names of subscribers."""

    def key_of(self, value: Any) -> str:
        """Return the hand-off key of an item; raises what the key function raises, or `InvalidOptionError`."""
        assert self.key is not None
        found = self.key(value)
        if isinstance(found, int | UUID) and not isinstance(found, bool):
            found = str(found)
        return check_key(found, "the hand-off key")


def make_publication(name: object, key: Any, to: Any, where: str) -> Publication:
    """Check a publication; `where` names the pipeline in errors."""
    label = check_label(name, f"{where}: the name of a publication", MAX_NAME)
    if key is not None and (not callable(key) or inspect.iscoroutinefunction(key)):
        raise InvalidOptionError(
            f"{where}: key must be a function from an item to a str, an int or a UUID that does not wait, got {key!r}; "
            "e.g. key=lambda invoice: invoice.id"
        )
    if to is not None and not isinstance(to, Mapping):
        raise InvalidOptionError(f"{where}: to must be a mapping of names to targets, got {to!r}")
    targets = {} if to is None else dict(to)
    for subscriber in targets:
        check_label(subscriber, f"{where}: the name of a subscriber", MAX_NAME)
    outlets = {name: checked_outlet(target, f"{where}: to[{name!r}]") for name, target in targets.items()}
    return Publication(label, key, outlets)


def check_subscriber(publisher: str, last: Stream, subscriber: str, takes: Any, publication: str) -> None:
    """Raise if a pipeline publishes items of a type that a subscriber of the same application does not take."""
    refused = [member for member in last if share(member.type, takes) is TypeShare.NONE]
    if refused:
        given = " and ".join(f"{member.source} gives {type_name(member.type)}" for member in refused)
        raise ConfigurationError(
            f"pipeline {subscriber} subscribes to {publication!r} and takes {type_name(takes)}, but in pipeline "
            f"{publisher}, which publishes it, {given}; correct one of the annotations, or subscribe to another "
            "publication"
        )


def refuse_names(publications: Sequence[Publication], subscribers: Mapping[str, Sequence[str]]) -> None:
    """Raise if a destination outside has the name of a pipeline that subscribes to the same publication."""
    for publication in publications:
        both = sorted(set(publication.to) & set(subscribers.get(publication.name, ())))
        if both:
            raise ConfigurationError(
                f"publication {publication.name!r}: {both[0]!r} is the name of a pipeline that subscribes to it, and "
                "of a destination in to=...; give the destination another name"
            )
