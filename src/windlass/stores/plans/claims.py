"""The plan of a claim: which jobs a node takes, and the gates that some of them must pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from windlass.domain.gates import Gate
from windlass.domain.lanes import QUEUE, RESOURCE, general_gate, read_lane
from windlass.runtime.failpoints import reached
from windlass.stores.claim_order import ClaimRequest, Head, QueueLane, Trust
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.plan import Plan, Step, along
from windlass.stores.plans import permits

Ways = Mapping[QueueLane, Sequence[str]]
"""The gates that jobs of a queue or a lane must pass."""

FOLD_EVERY = 16
"""Number of claims of a node after which released permits are counted in any case: else when permits run short."""


class TrustError(Exception):
    """Gates have less room than assumed: nothing was claimed, and the next claim must check first."""


def claim(dialect: Dialect, request: ClaimRequest) -> Plan[Claimed]:
    """Claim jobs for a node: highest effective priority first, then due time, then id.

    Jobs behind gates have their position in the same order; only those that a gate really holds back are skipped.
    """
    ways = {head.queue_lane: _way(head, request.limited) for head in request.heads}
    if any(ways.values()):
        found = yield from _claim_past_gates(dialect, request, ways)
    else:
        found = yield from dialect.claim(request, None)
    reached("claim.before_commit", lambda: bool(found.claims))
    return found


def _way(head: Head, limited: Collection[str]) -> tuple[str, ...]:
    """Return the names of a head's gates. A job in a lane checks for its queue's limit in any case."""
    if head.lane is None and head.queue not in limited:
        return ()
    return (QUEUE + head.queue, *read_lane(head.lane).gates)


def _claim_past_gates(dialect: Dialect, request: ClaimRequest, ways: Ways) -> Plan[Claimed]:
    wanted = {name for way in ways.values() for name in way}
    trust = request.trust
    if trust is not None and wanted <= trust.asked and request.turn % FOLD_EVERY:
        gates, found = yield from _claim_trusting(dialect, request, ways, wanted, trust)
    else:
        gates = yield from _enter(dialect, wanted, request.wanted, request.turn)
        found = yield from _claim_within(dialect, request, ways, gates)
        gates.count(found)
    trust = Trust(frozenset(wanted), frozenset(gates.gates)) if _is_wide(gates, wanted, request.wanted) else None
    changes = gates.changes()
    if changes:
        yield from dialect.write_gates(changes, final=True)
    return found._replace(trust=trust)


def _is_wide(gates: permits.LockedGates, wanted: Collection[str], number: int) -> bool:
    """Return whether the next claim may trust: there is room for more, and no resource is missing."""
    present = all(name in gates.gates for name in wanted if name.startswith(RESOURCE))
    return present and gates.have_room_for(2 * number)


def _claim_trusting(
    dialect: Dialect, request: ClaimRequest, ways: Ways, wanted: Collection[str], trust: Trust
) -> Plan[tuple[permits.LockedGates, Claimed]]:
    """Claim together with the locks, assuming enough room; then check whether there was."""
    counted = trust.counted & set(wanted)
    wide = permits.LockedGates(map(Gate, sorted(counted)), {}, 0)
    claiming = _claim_within(dialect, request, ways, wide)
    rows, found = yield from along(permits.lock_step(dialect, sorted(wanted)), claiming)
    held = permits.held(rows)
    gates = permits.LockedGates(held.gates.values(), {}, held.now)
    if held.gates.keys() != counted:
        raise TrustError
    gates.count(found)
    if not gates.have_room_for(0):
        raise TrustError
    return gates, found


def _claim_within(dialect: Dialect, request: ClaimRequest, ways: Ways, gates: permits.LockedGates) -> Plan[Claimed]:
    """Claim in the one order of all heads, as many as the locked gates let through."""
    wanted, shares = gates.shares_of(ways, request.wanted)
    heads = [head for head in request.heads if head.queue_lane in shares]
    if not heads:
        return Claimed([], {})
    behind_gates = {queue_lane: share for queue_lane, share in shares.items() if ways[queue_lane]}
    return (yield from dialect.claim(request._replace(heads=heads, wanted=wanted), behind_gates))


def _enter(dialect: Dialect, wanted: Collection[str], most: int, turn: int) -> Plan[permits.LockedGates]:
    """Lock the gates to pass, in the order of their names. Gates without a limit are skipped.

    For a new key its resource is locked, too, so that no other transaction creates the key or changes the resource.
    """
    missing = yield from _missing(dialect, sorted(name for name in wanted if name.startswith(RESOURCE) and "/" in name))
    generals = {name: general_gate(name) for name in missing}
    found, now = yield from permits.lock(dialect, sorted({*wanted, *generals.values()}))
    new = {name: general for name, general in generals.items() if general in found}
    if new:
        params = {"names": dialect.names(list(new)), "generals": dialect.names(list(new.values()))}
        found |= {row[0]: Gate._make(row) for row in (yield Step("make_key_gates", params))}
    ours = {name: gate for name, gate in found.items() if name in wanted}
    gates = yield from permits.locked(dialect, permits.Held(ours, now), None if turn % FOLD_EVERY == 0 else most)
    # If another transaction created the key first, waiting for it now would be out of order: the next claim does.
    gates.shut(name for name in new if name not in found)
    return gates


def _missing(dialect: Dialect, keys: Sequence[str]) -> Plan[list[str]]:
    """Return the keys that have no gate yet."""
    if not keys:
        return []
    known = {name for (name,) in (yield Step("known_gates", {"names": dialect.names(keys)}))}
    return [name for name in keys if name not in known]
