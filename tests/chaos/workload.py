"""Which jobs a run submits: a mix drawn from a seed, the same for the same seed and number."""

import random
from collections.abc import Callable
from typing import Any

from tests.chaos import bodies
from windlass import Backoff, Windlass
from windlass.submission.call import Call

BUSINESS_KEYS = 40
LATER = 0.3

Maker = Callable[[Windlass, int, random.Random], Call[Any]]


def _quick(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.quick, number)


def _slow(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.slow, number, round(dice.uniform(0.05, 0.6), 3))


def _long(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    """Long enough to be running twice when a stopped worker wakes up: whose outcome stands is then put to the test."""
    return app.bind(bodies.slow, number, round(dice.uniform(2, 4), 3))


def _threaded(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.threaded, number, round(dice.uniform(0.01, 0.2), 3))


def _delayed(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.quick, number).using(delay=round(dice.uniform(0.1, 2), 3))


def _flaky(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    failures = dice.randint(1, 3)
    backoff = dice.choice([Backoff.none(), Backoff.fixed(0.1), Backoff.exponential(0.05, jitter=0.5)])
    return app.bind(bodies.flaky, number, failures).using(max_retries=3, backoff=backoff)


def _hopeless(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.hopeless, number).using(max_retries=dice.randint(0, 2), backoff=Backoff.fixed(0.05))


def _refusing(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.refusing, number).using(max_retries=3)


def _snoozing(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.snoozing, number, dice.randint(1, 2), LATER)


def _overtime(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.overtime, number).using(timeout=0.4, max_retries=dice.randint(0, 1))


def _unwanted(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.unwanted, number).using(delay=dice.choice([0, 0, 0.5]))


def _in_process(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.in_process, number).using(executor="process")


def _overtime_in_process(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.overtime_in_process, number).using(executor="process", timeout=1)


def _dying_in_process(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return app.bind(bodies.dying_in_process, number).using(executor="process")


def _limited(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    behind: dict[str, Any] = {"resource": "stripe"}
    return app.bind(bodies.limited, number, "resource:stripe", round(dice.uniform(0.01, 0.1), 3)).using(**behind)


def _limited_by_key(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    tenant = dice.choice(["a", "b"])
    behind: dict[str, Any] = {"resource": "tenants", "resource_key": tenant}
    return app.bind(bodies.limited, number, f"resource:tenants/{tenant}", 0.02).using(**behind)


def _behind_circuit(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    behind: dict[str, Any] = {"circuit": "gateway"}
    return app.bind(bodies.behind_circuit, number).using(max_retries=1, **behind)


def _followed(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    body = dice.choice([bodies.followed, bodies.followed_failure])
    return app.bind(body, number).using(on_success=bodies.callback, on_failure=bodies.callback)


def _business(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    key = f"customer-{dice.randrange(BUSINESS_KEYS)}"
    return app.bind(bodies.slow, number, 0.05).using(business_key=key, on_conflict="return_existing")


_EVERYTHING: tuple[tuple[Maker, float], ...] = (
    (_quick, 40),
    (_slow, 10),
    (_long, 2),
    (_threaded, 8),
    (_delayed, 6),
    (_flaky, 8),
    (_hopeless, 3),
    (_refusing, 3),
    (_snoozing, 5),
    (_overtime, 2),
    (_unwanted, 3),
    (_in_process, 1),
    (_overtime_in_process, 0.2),
    (_dying_in_process, 0.3),
    (_followed, 4),
    (_business, 5),
)
_GATED: tuple[tuple[Maker, float], ...] = ((_limited, 4), (_limited_by_key, 2), (_behind_circuit, 2))
MIXES = {"everything": (*_EVERYTHING, *_GATED), "long": ((_long, 1.0),), "limited": ((_limited, 1.0),)}
"""Named, for runs that are after one thing."""


def call(app: Windlass, mix: str, seed: int, number: int, key: str | None = None) -> Call[Any]:
    """The job of a number. With a business key it takes no idempotency key: then two would decide what it is."""
    dice = random.Random(f"{seed}/{number}")
    makers, shares = zip(*MIXES[mix], strict=True)
    (maker,) = dice.choices(makers, shares)
    made: Call[Any] = maker(app, number, dice)
    return made if key is None or isinstance(made.options.business_key, str) else made.using(idempotency_key=key)


def is_unwanted(made: Call[Any]) -> bool:
    """Whether the driver is to cancel it."""
    return made.target.endswith(":unwanted")


def key_of(made: Call[Any]) -> str | None:
    """The idempotency key it was given."""
    key = made.options.idempotency_key
    return key if isinstance(key, str) else None
