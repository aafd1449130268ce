"""How databases differ when a plan runs on a connection of the caller."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from windlass.errors import InvalidOptionError
from windlass.stores.caller_transactions.commands import Command
from windlass.stores.dialect import Dialect
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.queries import Query
from windlass.stores.sqlite.session import statements_of


class TransactionStart(NamedTuple):
    """How to begin a transaction for a plan, if the caller has not begun one."""

    begin: str | None = None
    commits: bool = False
    """Whether it is committed after the plan; otherwise the caller commits it."""


class DatabaseRules(Protocol):
    """What differs between databases on callers' connections."""

    dialect: Dialect
    installation: tuple[Any, ...] | None
    """The identity of the application's database, from the plan `installation`; None until it was read."""
    writes_first: ClassVar[bool]
    """Whether the first statement must be a write: a transaction that reads first may not get the lock later."""

    def transaction_start(self, driver: Any) -> TransactionStart:
        """Return how to begin a transaction on this connection in its current state."""
        ...

    def in_transaction(self, driver: Any) -> bool:
        """Return whether there is a transaction to roll back."""
        ...

    def preparation(self) -> Generator[Command, Any, None]:
        """Return the commands that a connection needs before it writes our tables."""
        ...

    def query(self, step: Step) -> Query:
        """Return the statement a step names."""
        ...

    def text(self, query: Query, literals: Mapping[str, int] | None, *, pyformat: bool) -> str:
        """Return the text of a statement in the connection's form."""
        ...

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters that every statement gets."""
        ...

    def check_database(self, driver: Any) -> Plan[None]:
        """Raise if the connection leads to another database than the application's."""
        ...

    def translate(self, error: BaseException) -> Exception | None:
        """Return an error with advice that replaces the driver's error, or None."""
        ...


def commands_of(rules: DatabaseRules, step: Step, *, pyformat: bool) -> Generator[Command, Any, Any]:
    """Yield the commands of one step; return the result for the plan."""
    if step.name == SCRIPT:
        for part in statements_of(step.params["text"]):
            yield Command(part)
        return None
    query = rules.query(step)
    text, parameters = rules.text(query, step.literals, pyformat=pyformat), rules.parameters()
    if step.rows is None:
        return (yield Command(text, {**step.params, **parameters}, query.kind))
    results = []
    for row in step.rows:
        results.append((yield Command(text, {**row, **parameters}, query.kind)))
    return results


def wrong_database(expected: str, found: str) -> InvalidOptionError:
    """Return the error for a connection that leads to another database."""
    return InvalidOptionError(
        f"connection leads to another database than the application's: expected {expected}, got {found}; "
        "connect to the same one, or enqueue without connection="
    )
