"""Which submitted jobs are stored, row by row: keys that exist, what is submitted, what is answered and written."""

from dataclasses import dataclass, field

import pytest

from windlass.domain.admission import Holder, admit
from windlass.domain.job import Conflict, NewJob, SubmittedJob


def job(
    name: str, *, idempotency: str | None = None, business: str | None = None, on_conflict: str = "raise"
) -> NewJob:
    return NewJob(
        name,
        "mail",
        "shop:charge",
        2,
        "[]",
        idempotency_key=idempotency,
        business_key=business,
        on_conflict=on_conflict,
    )


@dataclass(frozen=True)
class Row:
    """Given these keys, when these units are submitted, then this is answered and written."""

    units: list[list[NewJob]]
    answers: list[list[SubmittedJob] | Conflict]
    rows: list[str]
    replaced: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    """Idempotency keys and the jobs that have them."""
    holders: dict[str, Holder] = field(default_factory=dict)
    """Business keys and the live jobs that have them."""


WAITS, RUNS, PAUSED = (Holder("old", status) for status in ("PENDING", "RUNNING", "PAUSED"))
SIGNALED = Holder("old", "WAITING")
ROWS = {
    "no keys": Row([[job("a"), job("b")]], [[SubmittedJob("a"), SubmittedJob("b")]], ["a", "b"]),
    "an empty unit": Row([[]], [[]], []),
    # ------------------------------------------------------------------ idempotency keys
    "a new idempotency key": Row([[job("a", idempotency="i")]], [[SubmittedJob("a")]], ["a"]),
    "a known idempotency key": Row(
        [[job("a", idempotency="i")]], [[SubmittedJob("first", duplicate=True)]], [], known={"i": "first"}
    ),
    "the same idempotency key twice in a unit": Row(
        [[job("a", idempotency="i"), job("b", idempotency="i")]],
        [[SubmittedJob("a"), SubmittedJob("a", duplicate=True)]],
        ["a"],
    ),
    "the same idempotency key in two units": Row(
        [[job("a", idempotency="i")], [job("b", idempotency="i")]],
        [[SubmittedJob("a")], [SubmittedJob("a", duplicate=True)]],
        ["a"],
    ),
    "an idempotency key answers before a business key": Row(
        [[job("a", idempotency="i", business="b")]],
        [[SubmittedJob("first", duplicate=True)]],
        [],
        known={"i": "first"},
        holders={"b": RUNS},
    ),
    # ------------------------------------------------------------------ business keys
    "a free business key": Row([[job("a", business="b")]], [[SubmittedJob("a")]], ["a"]),
    "raise, held": Row([[job("a", business="b")]], [Conflict("b", "old")], [], holders={"b": WAITS}),
    "raise, held by a running job": Row([[job("a", business="b")]], [Conflict("b", "old")], [], holders={"b": RUNS}),
    "return_existing, held": Row(
        [[job("a", business="b", on_conflict="return_existing")]],
        [[SubmittedJob("old", duplicate=True)]],
        [],
        holders={"b": WAITS},
    ),
    "return_existing, held by a running job": Row(
        [[job("a", business="b", on_conflict="return_existing")]],
        [[SubmittedJob("old", duplicate=True)]],
        [],
        holders={"b": RUNS},
    ),
    **{
        f"replace, held by a {holder.status} job": Row(
            [[job("a", business="b", on_conflict="replace")]],
            [[SubmittedJob("a", supersedes="old")]],
            ["a"],
            {"old": "a"},
            holders={"b": holder},
        )
        for holder in (WAITS, PAUSED, SIGNALED)
    },
    "replace, held by a running job": Row(
        [[job("a", business="b", on_conflict="replace")]],
        [Conflict("b", "old")],
        [],
        holders={"b": RUNS},
    ),
    "the same business key twice in a unit": Row(
        [[job("a", business="b"), job("c", business="b")]], [Conflict("b", "a")], []
    ),
    "replace within a unit": Row(
        [[job("a", business="b"), job("c", business="b", on_conflict="replace")]],
        [[SubmittedJob("a"), SubmittedJob("c", supersedes="a")]],
        ["a", "c"],
        {"a": "c"},
    ),
    "replace twice": Row(
        [[job(name, business="b", on_conflict="replace")] for name in ("a", "c")],
        [[SubmittedJob("a", supersedes="old")], [SubmittedJob("c", supersedes="a")]],
        ["a", "c"],
        {"old": "a", "a": "c"},
        holders={"b": WAITS},
    ),
    # ------------------------------------------------------------------ units
    "a unit is stored whole or not at all": Row(
        [[job("a"), job("b", idempotency="i", business="b"), job("c", business="held")]],
        [Conflict("held", "old")],
        [],
        holders={"held": WAITS},
    ),
    "keys of a refused unit stay free": Row(
        [
            [job("a", idempotency="i", business="b"), job("c", business="held")],
            [job("d", idempotency="i", business="b")],
        ],
        [Conflict("held", "old"), [SubmittedJob("d")]],
        ["d"],
        holders={"held": WAITS},
    ),
    "a replacement in a refused unit does not happen": Row(
        [[job("a", business="b", on_conflict="replace"), job("c", business="held")], [job("d", business="b")]],
        [Conflict("held", "old"), Conflict("b", "old")],
        [],
        holders={"b": WAITS, "held": RUNS},
    ),
    "a refused unit does not stop the next": Row(
        [[job("a", business="held")], [job("b")]],
        [Conflict("held", "old"), [SubmittedJob("b")]],
        ["b"],
        holders={"held": RUNS},
    ),
    "a later unit meets the keys of an earlier one": Row(
        [[job("a", business="b")], [job("c", business="b")], [job("d", business="b", on_conflict="return_existing")]],
        [[SubmittedJob("a")], Conflict("b", "a"), [SubmittedJob("a", duplicate=True)]],
        ["a"],
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_keys_decide_what_is_stored(row: Row):
    """J1.4, J1.5: idempotency keys first, then business keys; a unit whole or not at all."""
    known, holders = dict(row.known), dict(row.holders)
    admission = admit(row.units, known, holders)
    assert admission.answers == row.answers
    assert [stored.id for stored in admission.rows] == row.rows
    assert admission.replaced == row.replaced
    assert (known, holders) == (row.known, row.holders), "what was passed in is left as it was"
