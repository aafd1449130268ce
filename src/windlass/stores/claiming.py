"""The plan of a claim: which jobs a node takes, and the gates that some of them must pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windlass.domain.gates import Gate, share_out
from windlass.domain.lanes import QUEUE, RESOURCE, general_gate, read_lane
from windlass.runtime.failpoints import reached
from windlass.stores import guards
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.merging import Allotment, ClaimRequest, Head, Trust
from windlass.stores.plan import Plan, Step, along

FOLD_EVERY = 16
"""Claims of a node after which what was given back is counted in any case: else it is when places run short."""


class TrustError(Exception):
    """Gates have less room than was taken for granted: nothing was claimed, and the next claim must look first."""


def claim(dialect: Dialect, request: ClaimRequest) -> Plan[Claimed]:
    """Claim jobs for a node: highest effective priority first, then due time, then id.

    What waits behind gates is claimed as far as they let it through, lanes first, for at most half of what is wanted;
    who wants only one takes it from lanes and from elsewhere in turn.
    """
    lanes = [head for head in request.heads if head.lane is not None]
    limited = {head.queue for head in request.heads} & request.limited
    if lanes or limited:
        found = yield from _claim_past_gates(dialect, request, lanes, limited)
    else:
        found = yield from dialect.claim(request, {})
    reached("claim.before_commit", lambda: bool(found.claims))
    return found


def _claim_past_gates(
    dialect: Dialect, request: ClaimRequest, lanes: Sequence[Head], limited: Collection[str]
) -> Plan[Claimed]:
    plain = [head for head in request.heads if head.lane is None]
    wanted = _gates_of(lanes, limited)
    trust = request.trust
    if trust is not None and wanted <= trust.asked and not (lanes and plain) and request.turn % FOLD_EVERY:
        gates, found = yield from _claim_trusting(dialect, request, lanes, limited, wanted, trust)
    else:
        gates = yield from _enter(dialect, wanted, request.wanted, request.turn)
        found = yield from _claim_between(dialect, request, lanes, plain, limited, gates)
    trust = Trust(frozenset(wanted), frozenset(gates.gates)) if _is_wide(gates, wanted, request.wanted) else None
    changes = gates.changes()
    if changes:
        yield from dialect.write_gates(changes, final=True)
    return found._replace(trust=trust)


def _is_wide(gates: guards.LockedGates, wanted: Collection[str], number: int) -> bool:
    """Whether the next claim may trust: there is room for more, and no resource is missing, which may come back."""
    present = all(name in gates.gates for name in wanted if name.startswith(RESOURCE))
    return present and gates.leave_room_for(2 * number)


def _gates_of(lanes: Sequence[Head], limited: Collection[str]) -> set[str]:
    """The names of what these heads wait behind."""
    queues = {QUEUE + queue for queue in (*limited, *(head.queue for head in lanes))}
    return queues | {name for head in lanes for name in read_lane(head.lane).gates}


def _claim_trusting(
    dialect: Dialect,
    request: ClaimRequest,
    lanes: Sequence[Head],
    limited: Collection[str],
    wanted: Collection[str],
    trust: Trust,
) -> Plan[tuple[guards.LockedGates, Claimed]]:
    """Claim along with the locks, as if there were room enough; then see whether there was."""
    counted = trust.counted & set(wanted)
    wide = guards.LockedGates(map(Gate, sorted(counted)), {}, 0)
    if lanes:
        claiming = _claim_lanes(dialect, request, lanes, wide)
    else:
        claiming = dialect.claim(request, wide.allotments(limited))
    rows, found = yield from along(guards.lock_step(dialect, sorted(wanted)), claiming)
    held = guards.held(rows)
    gates = guards.LockedGates(held.gates.values(), {}, held.now)
    if held.gates.keys() != counted:
        raise TrustError
    gates.count(found)
    if not gates.leave_room_for(0):
        raise TrustError
    return gates, found


def _claim_between(
    dialect: Dialect,
    request: ClaimRequest,
    lanes: Sequence[Head],
    plain: Sequence[Head],
    limited: Collection[str],
    gates: guards.LockedGates,
) -> Plan[Claimed]:
    """So much of lanes and of queues as gates let through that are held."""
    room = (request.wanted + request.turn % 2) // 2 if plain else request.wanted
    found = yield from _claim_lanes(dialect, request._replace(wanted=room), lanes, gates)
    gates.count(found)
    if plain and len(found.claims) < request.wanted:
        rest = request._replace(heads=plain, wanted=request.wanted - len(found.claims))
        more = yield from dialect.claim(rest, gates.allotments(limited))
        gates.count(more)
        found = Claimed(found.claims + more.claims, found.payloads | more.payloads)
    return found


def _enter(dialect: Dialect, wanted: Collection[str], most: int, turn: int) -> Plan[guards.LockedGates]:
    """Lock what is to be passed, in the order of names. Gates that let everything through are left alone.

    For a key that is new its resource is locked, too: nobody else makes the key, or changes the resource, meanwhile.
    """
    missing = yield from _missing(dialect, sorted(name for name in wanted if name.startswith(RESOURCE) and "/" in name))
    generals = {name: general_gate(name) for name in missing}
    found, now = yield from guards.lock(dialect, sorted({*wanted, *generals.values()}))
    new = {name: general for name, general in generals.items() if general in found}
    if new:
        params = {"names": dialect.names(list(new)), "generals": dialect.names(list(new.values()))}
        found |= {row[0]: Gate._make(row) for row in (yield Step("make_key_gates", params))}
    ours = {name: gate for name, gate in found.items() if name in wanted}
    gates = yield from guards.locked(dialect, guards.Held(ours, now), None if turn % FOLD_EVERY == 0 else most)
    # Where somebody else made the key first, to wait for it now would be out of order: it is for the next claim.
    gates.shut(name for name in new if name not in found)
    return gates


def _missing(dialect: Dialect, keys: Sequence[str]) -> Plan[list[str]]:
    """Which keys have no gate yet."""
    if not keys:
        return []
    known = {name for (name,) in (yield Step("known_gates", {"names": dialect.names(keys)}))}
    return [name for name in keys if name not in known]


def _claim_lanes(
    dialect: Dialect, request: ClaimRequest, lanes: Sequence[Head], gates: guards.LockedGates
) -> Plan[Claimed]:
    """So much of each lane as its gates let through; the one whose first job comes first in the order of J3.1 first."""
    in_turn = sorted(lanes, key=lambda head: head.rank)
    ways = [[QUEUE + head.queue, *read_lane(head.lane).gates] for head in in_turn]
    most = request.wanted if len(lanes) <= 2 else max(1, 2 * request.wanted // len(lanes))
    shares = share_out(most, ways, gates.free())
    allotted = {
        head: Allotment(share, gates.holds(way))
        for head, way, share in zip(in_turn, ways, shares, strict=True)
        if share
    }
    return (yield from dialect.claim_lanes(request, allotted)) if allotted else Claimed([], {})
