"""Chunks of an expansion, and the check of one that is run again."""

from collections.abc import Iterator

import pytest

from windlass import Windlass
from windlass.domain.execution_items import ItemStatus
from windlass.pipelines.emitter import ChangedExpansionError, Emitter, Position


@pytest.fixture
def app() -> Iterator[Windlass]:
    application = Windlass("sqlite://")
    yield application
    application.close()


def emitter(app: Windlass, reached: Position) -> Emitter:
    name = f"shop{len(list(app._pipelines))}"
    shop = app.pipeline(name, version="1", buffer=3)

    @shop.expand
    def numbers(number: int) -> Iterator[int]:
        yield from range(number)

    definition = shop.definition
    place = ("e", 1, "")
    return Emitter(definition, shop.values, definition.steps[0], place, reached, lambda value: (ItemStatus.READY, 1))


def test_a_chunk_is_full_at_the_buffer_and_a_repeated_run_drops_what_is_stored(app: Windlass):
    """P2.3: a retry continues instead of emitting again."""
    first = emitter(app, Position(0, None))
    assert [first.add(number) for number in (10, 11, 12)] == [False, False, True]
    chunk = first.take()
    assert [item.path for item in chunk.items] == ["10", "11", "12"]
    again = emitter(app, chunk.position)
    assert [again.add(number) for number in (10, 11, 12, 13)] == [False] * 4
    rest = again.take()
    assert [item.path for item in rest.items] == ["13"]
    assert rest.position.emitted == 4
    again.check_end()


@pytest.mark.parametrize("given", [(10, 11, 99), (10, 11)])
def test_an_expansion_that_gives_other_items_than_before_is_refused(app: Windlass, given: tuple[int, ...]):
    """P2.3: the last stored item is compared, and the number of items."""
    first = emitter(app, Position(0, None))
    for number in (10, 11, 12):
        first.add(number)
    again = emitter(app, first.take().position)

    def run_again() -> None:
        for number in given:
            again.add(number)
        again.check_end()

    with pytest.raises(ChangedExpansionError, match="other items than before"):
        run_again()
