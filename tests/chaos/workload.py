"""Which jobs a run submits: a mix drawn from a seed, the same for the same seed and number."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.chaos import bodies
from tests.chaos.pipelines import Order, pipeline_of
from windlass import Backoff, Call, Flow, Windlass, group
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.submission.flow_layout import answering_call

BUSINESS_KEYS = 40
LATER = 0.3


class Execution(NamedTuple):
    """An execution to be submitted. It has a key in any case, which names what is to become of it."""

    app: Windlass
    order: Order
    key: str

    def enqueue(self) -> ExecutionHandle:
        return pipeline_of(self.app, self.order.pipeline).submit(self.order, key=self.key)


Made = Call[Any] | Flow[Any] | Execution
Maker = Callable[[Windlass, int, random.Random], Call[Any]]
Linker = Callable[[Windlass, int, random.Random, Call[Any]], Flow[Any]]


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


def _first(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return dice.choice([_quick, _quick, _slow, _flaky, _hopeless])(app, number, dice)


def _first_of_groups(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    return _first(app, number, dice)


def _chain(app: Windlass, number: int, dice: random.Random, first: Call[Any]) -> Flow[Any]:
    """The second step has a branch beside the chain."""
    second = _first(app, number, dice).then_on_failure(_quick(app, number, dice))
    return first.then(second).then(_quick(app, number, dice))


def _joined(app: Windlass, number: int, dice: random.Random, first: Call[Any]) -> Flow[Any]:
    """A group behind the first step, one that follows its failure, and its join."""
    members = [_first(app, number, dice) for _ in range(dice.randint(1, 5))]
    fanned = first.then(group(*members).then_on_failure(_quick(app, number, dice)))
    return fanned.then(_quick(app, number, dice))


def _ordered(app: Windlass, number: int, dice: random.Random) -> Call[Any]:
    """Stands for an execution."""
    raise NotImplementedError


def order(number: int, dice: random.Random) -> Order:
    """The execution of a number: one of four dies, one of four rejects."""
    lines = dice.randint(1, 20)
    some = dice.sample(range(lines), dice.randint(0, min(2, lines - 1)))
    hopeless = dice.choice([line for line in range(lines) if line not in some]) if dice.random() < 0.15 else -1
    return Order(
        pipeline=dice.choice(["orders", "parcels"]),
        number=number,
        lines=lines,
        seconds=round(dice.uniform(0, 0.1), 3),
        rejected=some if dice.random() < 0.4 else [],
        flaky=dice.sample(range(lines), dice.randint(0, min(2, lines))),
        hopeless=hopeless,
        refuses=dice.random() < 0.5,
    )


_LINKED: dict[Maker, Linker] = {_first: _chain, _first_of_groups: _joined}
"""What follows the job that a maker has made."""

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
    (_first, 2),
    (_first_of_groups, 1),
    (_ordered, 2),
    (_business, 5),
)
_GATED: tuple[tuple[Maker, float], ...] = ((_limited, 4), (_limited_by_key, 2), (_behind_circuit, 2))
MIXES = {
    "everything": (*_EVERYTHING, *_GATED),
    "long": ((_long, 1.0),),
    "limited": ((_limited, 1.0),),
    "flows": ((_first, 1.0), (_first_of_groups, 1.0)),
    "pipelines": ((_ordered, 1.0),),
}
"""Named, for runs that are after one thing."""


def _drawn(mix: str, seed: int, number: int) -> tuple[Maker, random.Random]:
    """What a number is to be, and the dice that decide the rest."""
    dice = random.Random(f"{seed}/{number}")
    makers, shares = zip(*MIXES[mix], strict=True)
    (maker,) = dice.choices(makers, shares)
    return maker, dice


def call(app: Windlass, mix: str, seed: int, number: int, key: str | None = None) -> Made:
    """The job, flow or execution of a number. With a business key it takes no idempotency key: two would decide it."""
    maker, dice = _drawn(mix, seed, number)
    if maker is _ordered:
        return Execution(app, order(number, dice), key or f"plain-{number}")
    made: Call[Any] = maker(app, number, dice)
    if key is not None and not isinstance(made.options.business_key, str):
        made = made.using(idempotency_key=key)
    return _LINKED[maker](app, number, dice, made) if maker in _LINKED else made


def orders(mix: str, seed: int, count: int) -> dict[int, Order]:
    """All executions of a run, by number."""
    drawn = ((number, *_drawn(mix, seed, number)) for number in range(count))
    return {number: order(number, dice) for number, maker, dice in drawn if maker is _ordered}


def is_unwanted(made: Made) -> bool:
    """Whether the driver is to cancel it."""
    return isinstance(made, Call) and made.target.endswith(":unwanted")


def key_of(made: Made) -> str | None:
    """The key it was given; of a flow, its first job."""
    if isinstance(made, Execution):
        return made.key
    key = (made if isinstance(made, Call) else answering_call(made)).options.idempotency_key
    return key if isinstance(key, str) else None
