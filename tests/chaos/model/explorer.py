"""Explores every order of events, up to a depth, and returns the shortest history that ends in a violation."""

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Move(NamedTuple):
    """Something that can happen now."""

    make: Callable[[], str]
    """Makes it happen, and describes it."""


class World(Protocol):
    """What is explored. Moves are atomic: nothing else happens within one."""

    def moves(self) -> Iterable[Move]:
        """Everything that can happen next."""
        ...

    def branch(self) -> AbstractContextManager[None]:
        """What happens inside is undone at its end."""
        ...

    def key(self) -> Hashable:
        """What distinguishes this state from others: equal keys have equal futures."""
        ...

    def problems(self) -> list[str]:
        """What must never be, and is."""
        ...


class Story(NamedTuple):
    """What happened, and what is wrong with it."""

    lines: tuple[str, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        numbered = [f"{number:3}. {line}" for number, line in enumerate(self.lines, 1)]
        return "\n".join([*numbered, *(f"  => {problem}" for problem in self.problems)])


class Explored(NamedTuple):
    """What an exploration found, and how many states it has seen."""

    story: Story | None
    states: int


def explore(world: World, depth: int) -> Explored:
    """Look at all stories of 1, 2, … `depth` moves; the first bad one found is thus among the shortest."""
    sound: set[Hashable] = set()
    for limit in range(1, depth + 1):
        story = _Search(world, sound).below(limit, ())
        if story is not None:
            return Explored(story, len(sound))
    return Explored(None, len(sound))


class _Search:
    """All stories up to a length. A state is gone on from again only if more moves are left than the last time."""

    def __init__(self, world: World, sound: set[Hashable]) -> None:
        self._world = world
        self._sound = sound
        self._left: dict[Hashable, int] = {}

    def below(self, left: int, lines: tuple[str, ...]) -> Story | None:
        """The first bad story that begins with these lines and has at most `left` more."""
        for move in self._world.moves():
            with self._world.branch():
                story = self._after((*lines, move.make()), left - 1)
            if story is not None:
                return story
        return None

    def _after(self, lines: tuple[str, ...], left: int) -> Story | None:
        key = self._world.key()
        if self._left.get(key, -1) >= left:
            return None
        self._left[key] = left
        if key not in self._sound:
            problems = self._world.problems()
            if problems:
                return Story(lines, tuple(problems))
            self._sound.add(key)
        return self.below(left, lines) if left else None
