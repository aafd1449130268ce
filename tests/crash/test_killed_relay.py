"""Workers killed while they deliver outside of the database: every delivery is admitted once, by its key."""

from collections.abc import Iterator

import pytest

from tests.crash.programs.relay_worker import RelayPrograms
from tests.support.crashing import KILLED
from tests.support.facts import rows
from tests.support.http_receiver import Receiver, receiving
from tests.support.programs import SHORT_LEASES, STEADY_LEASES, Program, Programs
from tests.support.remote_handoffs import hand_off, statuses_of
from tests.support.waiting import until
from windlass import JobFailedError

LONG = 240.0
KEYS = [f"k{number}" for number in range(40)]


class Scene:
    """A store, a receiver, and the workers of a test."""

    def __init__(self, url: str, programs: Programs, receiver: Receiver) -> None:
        self.url, self.receiver = url, receiver
        self._programs = programs
        self.given = RelayPrograms(url, receiver.url)
        self.given.app.migrate()

    def start(self, failpoints: str = "", **environ: str) -> Program:
        given = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": failpoints, **environ}
        return self._programs.start("relay_worker", self.url, self.receiver.url, environ=given)

    def killed(self, failpoint: str) -> Program:
        """A worker that dies at a point."""
        worker = self.start(f"{failpoint}=kill")
        code = worker.exit_code()
        assert code == KILLED, f"it did not die at {failpoint} but ended with {code}:\n{worker.printed}"
        return worker

    def all_settled(self) -> None:
        """Wait until nothing waits for its delivery."""

        def settled() -> bool:
            waiting = rows(self.url, "SELECT count(*) FROM windlass_outbox")[0][0]
            return waiting == 0 and set(statuses_of(self.url, "crm").values()) <= {"ADMITTED"}

        until(settled, "everything to be delivered and marked", LONG)

    def close(self) -> None:
        self.given.app.close()


@pytest.fixture
def scene(store_url: str, programs: Programs) -> Iterator[Scene]:
    with receiving() as receiver:
        scene = Scene(store_url, programs, receiver)
        yield scene
        scene.close()


@pytest.mark.parametrize("point", ["relay.claimed", "relay.delivered"])
def test_hand_offs_of_a_killed_relay_are_delivered_by_the_next_one(scene: Scene, point: str):
    """P9.C10 relay.claimed, P9.C7 relay.delivered: each is admitted once, by its key, and its source runs no more."""
    hand_off(scene.url, "crm", KEYS)
    scene.killed(point)
    before = len(scene.receiver.requests)
    assert (before > 0) == (point == "relay.delivered")
    assert set(statuses_of(scene.url, "crm").values()) == {"WAITING"}
    scene.start()
    scene.all_settled()
    assert scene.receiver.admitted == dict.fromkeys(KEYS, 1)
    again = before if point == "relay.delivered" else 0
    assert len(scene.receiver.requests) == len(KEYS) + again
    assert {request.body for request in scene.receiver.requests} == {f'{{"id": "{key}"}}' for key in KEYS}


def test_two_relays_at_once_deliver_each_hand_off_once(scene: Scene):
    """P9.C10: one at a time has the lease of a destination."""
    keys = [f"k{number}" for number in range(350)]
    workers = [scene.start(**STEADY_LEASES) for _ in range(2)]
    for worker in workers:
        assert worker.node
    for start in range(0, len(keys), 50):
        hand_off(scene.url, "crm", keys[start : start + 50])
    scene.all_settled()
    assert scene.receiver.admitted == dict.fromkeys(keys, 1)
    assert len(scene.receiver.requests) == len(keys)
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0


@pytest.mark.parametrize(
    ("point", "number", "table"),
    [
        ("completer.after_commit", 1, "windlass_reject"),
        ("dead_letter.after_commit", -1, "windlass_dead_letter"),
        ("relay.claimed", 1, "windlass_reject"),
        ("relay.delivered", -1, "windlass_dead_letter"),
    ],
)
def test_a_reject_and_a_dead_letter_outlive_a_crash_before_their_delivery(
    scene: Scene, point: str, number: int, table: str
):
    """P5.3, P6.2, P9.C6: they are in the outbox as soon as they are in the store."""
    run = scene.given.sieve.submit(number)
    scene.killed(point)
    assert rows(scene.url, f"SELECT count(*) FROM {table}") == [(1,)]
    assert rows(scene.url, "SELECT count(*) FROM windlass_outbox") == [(1,)]
    scene.start()
    scene.all_settled()
    if number > 0:
        assert run.result(LONG) is None
    else:
        with pytest.raises(JobFailedError, match="negative"):
            run.result(LONG)
    assert list(scene.receiver.admitted.values()) == [1]
    assert {request.headers["Windlass-Kind"] for request in scene.receiver.requests} == {
        "reject" if number > 0 else "dead_letter"
    }


def test_a_crash_before_the_commit_stores_neither_a_dead_letter_nor_its_delivery(scene: Scene):
    """P9.C6: both are there, or neither is."""
    scene.given.sieve.submit(-1)
    scene.killed("dead_letter.before_commit")
    assert rows(scene.url, "SELECT count(*) FROM windlass_dead_letter") == [(0,)]
    assert rows(scene.url, "SELECT count(*) FROM windlass_outbox") == [(0,)]
    scene.start()
    until(lambda: scene.receiver.admitted, "the dead letter to be delivered", LONG)
    scene.all_settled()
    assert list(scene.receiver.admitted.values()) == [1]
