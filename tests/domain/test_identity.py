"""Ids of jobs and nodes."""

import os
import re
import subprocess
import sys
import threading
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain import identity
from windlass.domain.clock import wall_nanos
from windlass.domain.identity import new_job_id, new_job_ids, new_node_id, parse_job_id
from windlass.errors import InvalidOptionError

MS = 1_000_000

FORKING = """
import os, sys
from windlass.domain.identity import new_job_id, new_job_ids
before = new_job_id()
reader, writer = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.write(writer, "".join(f"{made}\\n" for made in [new_job_id(), *new_job_ids(20)]).encode())
        os._exit(0)
    children.append(child)
own = new_job_ids(20)
for child in children:
    os.waitpid(child, 0)
os.close(writer)
with open(reader) as pipe:
    print(before, *own, *pipe.read().split(), sep="\\n")
"""


class Walls:
    """A wall clock that shows the given milliseconds, one after another, and then stays."""

    def __init__(self, milliseconds: list[int]) -> None:
        self._left = list(milliseconds)

    def __call__(self) -> int:
        return (self._left.pop(0) if len(self._left) > 1 else self._left[0]) * MS


@pytest.fixture
def sequence(monkeypatch):
    """The real machinery with a number of its own, so that tests may move its clock."""
    own = identity._Sequence()
    monkeypatch.setattr(identity, "_sequence", own)
    return own


def milliseconds(job_id: str) -> int:
    return UUID(job_id).int >> 80


class TestJobId:
    def test_is_a_uuid_of_version_7_that_carries_the_time(self):
        """J1.2: UUIDv7, made by the client."""
        before = wall_nanos() // MS
        made = new_job_id()
        assert UUID(made).version == 7
        assert UUID(made).variant == "specified in RFC 4122"
        assert milliseconds(made) >= before

    def test_is_the_canonical_text_of_a_uuid(self):
        """J1.2: stores and users may read it as a UUID and write it back."""
        for made in new_job_ids(50):
            assert str(UUID(made)) == made

    @given(st.lists(st.integers(0, 30), max_size=20))
    def test_ids_only_grow_however_single_and_bulk_ones_mix(self, counts):
        """J1.2: bulk order is id order, also as text and as bytes."""
        made = []
        for count in counts:
            made.append(new_job_id())
            made.extend(new_job_ids(count))
        assert made == sorted(set(made))
        assert [UUID(one) for one in made] == sorted(UUID(one) for one in made)

    @given(st.lists(st.integers(1, 2**40), min_size=1, max_size=30))
    def test_ids_grow_whatever_the_wall_clock_does(self, walls):
        """J1.2: also when the clock goes back."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(identity, "_sequence", identity._Sequence())
            patch.setattr(identity, "wall_nanos", Walls(walls))
            made = [one for _ in walls for one in (new_job_id(), *new_job_ids(2))]
        assert made == sorted(set(made))
        assert all(UUID(one).version == 7 for one in made)
        assert milliseconds(made[-1]) <= max(walls) + 1

    def test_a_clock_that_goes_back_keeps_the_last_millisecond(self, sequence, monkeypatch):
        monkeypatch.setattr(identity, "wall_nanos", Walls([5_000, 4_000, 5_001]))
        assert [milliseconds(new_job_id()) for _ in range(3)] == [5_000, 5_000, 5_001]

    @pytest.mark.parametrize("count", [1, 3])
    def test_an_exhausted_millisecond_carries_into_the_next(self, sequence, monkeypatch, count):
        monkeypatch.setattr(identity, "wall_nanos", Walls([5_000]))
        first = new_job_id()
        sequence.low = identity._LOW_END - 2
        following = new_job_ids(count)
        assert all(milliseconds(one) == 5_001 and UUID(one).version == 7 for one in following)
        assert following == sorted({*following, first})[1:]

    def test_threads_never_draw_the_same_and_each_sees_its_own_grow(self):
        """J1.2: thread safe."""
        drawn: list[list[str]] = [[] for _ in range(4)]
        start = threading.Barrier(4)

        def draw(into: list[str]) -> None:
            start.wait()
            for _ in range(300):
                into.append(new_job_id())
                into.extend(new_job_ids(3))

        threads = [threading.Thread(target=draw, args=(into,)) for into in drawn]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        everything = [one for into in drawn for one in into]
        assert len(set(everything)) == len(everything) == 4 * 300 * 4
        assert all(into == sorted(into) for into in drawn)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
    def test_forked_children_draw_other_ids_than_their_parent_and_each_other(self):
        """J1.2: randomness is not inherited, and ids keep growing from those made before the fork."""
        out = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=300)
        before, *others = [UUID(line) for line in out.stdout.split()]
        assert len(others) == 20 + 4 * 21
        assert len(set(others)) == len(others)
        assert min(others) > before

    def test_a_count_of_zero_or_less_gives_no_ids(self):
        assert new_job_ids(0) == []
        assert new_job_ids(-1) == []


class TestParseJobId:
    def test_takes_a_uuid_or_its_text(self):
        made = new_job_id()
        assert parse_job_id(made) == made
        assert parse_job_id(UUID(made)) == made
        assert parse_job_id(f" {made.upper()} ") == made
        assert parse_job_id(UUID(made).hex) == made
        other = uuid4()
        assert parse_job_id(str(other)) == str(other)

    @pytest.mark.parametrize(
        "value", ["", "7", "not-an-id", 7, None, b"0" * 16, "0198c0de-0000-7000-8000-00000000000g"]
    )
    def test_refuses_anything_else_and_shows_it(self, value):
        with pytest.raises(InvalidOptionError, match="a job id is a UUID or its text") as refused:
            parse_job_id(value)
        assert repr(value) in str(refused.value)


class TestNodeId:
    def test_has_host_pid_and_a_random_part(self):
        """J7.1: host, pid and a random part."""
        assert re.fullmatch(r"web1\.example-1234-[0-9a-f]{8}", new_node_id("web1.example", 1234))

    def test_is_new_at_each_start(self):
        """J7.1: the same host and pid do not give the same id twice."""
        assert len({new_node_id("web1", 1) for _ in range(200)}) == 200

    @given(st.text(max_size=300), st.integers(1, 2**22))
    def test_is_readable_and_bounded_whatever_the_host_is_called(self, host, pid):
        """J7.1: an id fits logs, labels and columns."""
        assert re.fullmatch(rf"[A-Za-z0-9_.-]{{1,64}}-{pid}-[0-9a-f]{{8}}", new_node_id(host, pid))
