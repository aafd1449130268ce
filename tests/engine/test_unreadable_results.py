"""Results that raise when they are looked at: the body has run, so its job succeeds, and it is not run again."""

from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps
from tests.support.hostile_values import ClosedMapping, Proxy, nested, nested_dicts
from windlass import RESULT, DroppedResult, JobResult, JobStatus, Windlass
from windlass.submission.codec import JsonSerializer
from windlass.submission.json_depth import MAX_LEVELS


class ProxyClass:
    """One that pretends to be of another class, which cannot be found out."""

    @property  # type: ignore[misc]  # as proxies do it
    def __class__(self) -> Any:
        raise LookupError("no session")


class Exiting(Proxy):
    """One that ends the process."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(3)


class Interrupting(Proxy):
    """One that looks like Ctrl-C."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyboardInterrupt


class Endless(list[int]):
    """Looks into itself without end."""

    def __iter__(self) -> Any:
        return iter([self])


class OutOfMemory(list[int]):
    """Larger than the machine."""

    def __iter__(self) -> Any:
        raise MemoryError


class Unprintable:
    """Not JSON, and it cannot be shown either."""

    def __repr__(self) -> str:
        raise SystemExit(4)

    __str__ = __repr__


RESULTS = {
    kind.__name__: kind for kind in (Proxy, ProxyClass, Exiting, Interrupting, Endless, OutOfMemory, Unprintable)
} | {
    "ClosedMapping": lambda: ClosedMapping(a=1),
    "deep": lambda: nested(MAX_LEVELS + 1),
    "too deep for anything": lambda: nested(100_000),
}


SUBCLASSES = {"ClosedMapping", "Endless", "OutOfMemory"}
"""Where an annotation asks for a list or dict, what theirs holds is read past their own methods."""


def charge(kind: str) -> Any:
    jobs.seen.append(kind)
    return RESULTS[kind]()


async def acharge(kind: str) -> dict[str, int]:
    result: dict[str, int] = charge(kind)
    return result


@pytest.mark.parametrize("body", [charge, acharge])
def test_a_result_that_cannot_be_read_becomes_a_marker(app: Windlass, body: Any):
    """J1.6: the job succeeds at its first attempt, whatever looking at its result raises."""
    job = app.job(max_retries=2)(body)
    with app.worker():
        handles = {kind: job.enqueue(kind) for kind in RESULTS}
        ended = {kind: handle.join(timeout=LONG) for kind, handle in handles.items()}
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert ended == dict.fromkeys(RESULTS, JobStatus.SUCCEEDED)
    assert sorted(jobs.seen) == sorted(RESULTS)
    for kind, handle in handles.items():
        result = app.get(handle.id).result
        assert kind in SUBCLASSES or isinstance(result, DroppedResult), kind
        assert kind in SUBCLASSES or "cannot be stored" in result.reason


class BrokenSerializer(JsonSerializer):
    """A serializer of the user's that breaks the promise never to raise."""

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        raise OSError("no disk left for its temporary files")


def test_a_serializer_that_raises_does_not_fail_the_job(apps: Apps):
    """J1.6: nor is the body run again."""
    app = apps(serializer=BrokenSerializer())
    note = app.job(max_retries=2)(jobs.note)
    with app.worker():
        handle = note.enqueue("once")
        assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
    assert jobs.seen == ["once"]
    assert isinstance(app.get(handle.id).result, DroppedResult)


def deepest(value: Any) -> Any:
    return value


def note_both(own: Any, result: JobResult) -> None:
    jobs.seen.append((own, result.args, result.value))


@pytest.mark.parametrize("make", [nested, nested_dicts])
def test_a_callback_takes_the_deepest_argument_that_is_accepted(app: Windlass, make: Any):
    """J1.1, J5.4: what enqueue accepts can be an argument, a result, and both in a callback."""
    value = make(MAX_LEVELS)
    note = app.job(note_both)
    with app.worker():
        handle = app.job(deepest).using(on_success=note.bind(value, RESULT)).enqueue(value)
        assert handle.result(timeout=LONG) == value
        (callback,) = app.find(target=note.target)
        assert app.handle(callback.id).join(timeout=LONG) is JobStatus.SUCCEEDED
    assert jobs.seen == [(value, (value,), value)]
