"""What is particular to each database when a plan runs on a connection that is not ours."""

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
    """How to begin the transaction of a plan where the caller has begun none."""

    begin: str | None = None
    commits: bool = False
    """Whether it ends with the plan, or is left to the caller to commit."""


class DatabaseRules(Protocol):
    """What one database needs of connections of callers."""

    dialect: Dialect
    installation: tuple[Any, ...] | None
    """The application's own database, as the plan `installation` tells it; None until it has been asked."""
    writes_first: ClassVar[bool]
    """Whether the first statement must be a write: a transaction that reads first may be refused the lock later."""

    def transaction_start(self, driver: Any) -> TransactionStart:
        """Return how to begin on this connection as it is now."""
        ...

    def in_transaction(self, driver: Any) -> bool:
        """Return whether there is a transaction to roll back."""
        ...

    def preparation(self) -> Generator[Command, Any, None]:
        """Return what a connection needs before it writes our tables."""
        ...

    def query(self, step: Step) -> Query:
        """Return the statement a step names."""
        ...

    def text(self, query: Query, literals: Mapping[str, int] | None, *, pyformat: bool) -> str:
        """Its text as the connection takes it."""
        ...

    def parameters(self) -> Mapping[str, Any]:
        """Parameters that every statement gets."""
        ...

    def check_database(self, driver: Any) -> Plan[None]:
        """Refuse a connection to another database than the application's."""
        ...

    def translate(self, error: BaseException) -> Exception | None:
        """Return an error of ours in place of the driver's, where that would not say what to do."""
        ...


def commands_of(rules: DatabaseRules, step: Step, *, pyformat: bool) -> Generator[Command, Any, Any]:
    """Return the commands of one step, and what the plan is sent for it."""
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
