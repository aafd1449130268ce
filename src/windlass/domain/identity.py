"""Ids of jobs and nodes.

Inside the engine a job id is its canonical text: every store accepts and returns it without conversion, and it hashes
and compares in C. The public API (handles, jobs, events, errors) uses `UUID`s.

A job id is a UUIDv7: 48 bits of milliseconds, then 74 bits that start random in each millisecond, the lower 62 of which
grow by random steps within it. Ids of one process therefore only grow, whatever the system's clock does, and the order
of a bulk insert is the order of its ids.
"""

import os
import re
import secrets
import threading
from random import Random
from typing import Final
from uuid import UUID

from windlass.domain.clock import wall_nanos
from windlass.errors import InvalidOptionError

FIRST_ID: Final = "00000000-0000-0000-0000-000000000000"
"""Less than any id."""
LAST_ID: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"
"""Greater than any id."""

_LOW_BITS: Final = 62
_LOW_END: Final = 1 << _LOW_BITS
_VERSION_AND_VARIANT: Final = 7 << 76 | 2 << 62
_STEP_BITS: Final = 32
_MAX_HOST: Final = 64
_NANOS_PER_MS: Final = 1_000_000


class _Sequence:
    """The growing number behind the ids of this process: `head` is fixed within a millisecond, `low` grows in it."""

    __slots__ = ("bits", "head", "lock", "low", "millisecond")

    def __init__(self) -> None:
        self.millisecond = self.head = self.low = 0
        self.part_from_parent()

    def part_from_parent(self) -> None:
        """Restart in a forked process: new lock, new randomness, and a millisecond without any number."""
        self.lock = threading.Lock()
        self.bits = Random(os.urandom(32)).getrandbits  # noqa: S311 - unique, not secret
        self._enter(self.millisecond + 1)

    def draw(self) -> int:
        with self.lock:
            self._step(1)
            return self.head | self.low

    def draw_many(self, count: int) -> list[int]:
        with self.lock:
            self._step(count)
            head, low, bits = self.head, self.low, self.bits
            numbers = [head | low]
            for _ in range(count - 1):
                low += bits(_STEP_BITS) + 1
                numbers.append(head | low)
            self.low = low
        return numbers

    def _step(self, count: int) -> None:
        """Move on to the next number, with room for `count` of them."""
        millisecond = wall_nanos() // _NANOS_PER_MS
        if millisecond > self.millisecond:
            self._enter(millisecond)
            return
        self.low += self.bits(_STEP_BITS) + 1
        if self.low + (count << _STEP_BITS) > _LOW_END:
            self._enter(self.millisecond + 1)

    def _enter(self, millisecond: int) -> None:
        self.millisecond = millisecond
        self.head = millisecond << 80 | self.bits(12) << 64 | _VERSION_AND_VARIANT
        # One bit less than fits leaves room for 2**29 steps and more.
        self.low = self.bits(_LOW_BITS - 1)


_sequence = _Sequence()
os.register_at_fork(after_in_child=_sequence.part_from_parent)


def _text(number: int) -> str:
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_job_id() -> str:
    """Make a UUIDv7 that is greater than every one made before in this process."""
    return _text(_sequence.draw())


def new_job_ids(count: int) -> list[str]:
    """Make `count` ids in growing order, cheaper than one by one."""
    if count < 1:
        return []
    return [_text(number) for number in _sequence.draw_many(count)]


def lowest_job_id(micros: int) -> str:
    """Return an id below all those made at that time or later, by the clock of the process that makes them."""
    return _text(max(micros // 1000, 0) << 80)


def parse_job_id(value: UUID | str) -> str:
    """Return the canonical text of a job id given by a user.

    Example: `parse_job_id("0198C0DE-0000-7000-8000-000000000001")`
    """
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        try:
            return str(UUID(value.strip()))
        except ValueError:
            pass
    raise InvalidOptionError(
        f"a job id is a UUID or its text, like 0198c0de-0000-7000-8000-000000000001; got {value!r}"
    )


def new_node_id(host: str, pid: int) -> str:
    """Name a node for one run: host, pid and a random part, e.g. `web1-1234-a1b2c3d4`."""
    return f"{process_name(host, pid)}-{secrets.token_hex(4)}"


def process_name(host: str, pid: int) -> str:
    """Name a process by host and pid, as the ids of its nodes begin: `web1-1234`."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", host).strip("-")[:_MAX_HOST] or "node"
    return f"{readable}-{pid}"


def host_of(node_id: str) -> str:
    """Return the host in a node's name: `host_of("web-1-1234-a1b2c3d4") == "web-1"`."""
    return node_id.rsplit("-", 2)[0]
