"""The keys of tokens of one application: those of the settings, else one that is made in the store at first use."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from windlass.domain.interaction_tokens import TokenContent, TokenKey, content_of, key_of, read, sign
from windlass.execution_errors import InvalidTokenError
from windlass.runtime.verbs import Verb
from windlass.stores.database import Database
from windlass.stores.plans import external_waits

_BYTES: Final = 32


class TokenKeys:
    """Signs and verifies tokens. The first configured key signs; all of them, and the stored ones, verify."""

    def __init__(self, configured: Sequence[str]) -> None:
        self._configured = {key.key_id: key for key in map(key_of, configured)}
        self._signs = next(iter(self._configured.values()), None)
        self._stored: dict[str, TokenKey] = {}
        self._database: Database | None = None
        """The one that the stored keys are of."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._configured)} configured keys>"

    def ready(self, database: Database) -> Verb[None]:
        """Make sure that there is a key to sign with."""
        if self._signs is not None or (self._stored and self._database is database):
            return
        secret = secrets.token_urlsafe(_BYTES)
        rows = yield database.run, database.arun, (external_waits.make_secret, secret)
        self._keep(database, rows)

    def sign(self, content: TokenContent) -> str:
        """Return the token of a wait; `ready` was called before."""
        key = self._signs or self._stored[external_waits.STORED_KEY]
        return sign(key, content)

    def verified(self, database: Database, token: object) -> Verb[TokenContent]:
        """Return the content of a token; raises `InvalidTokenError`, which does not echo it."""
        found = read(token) if isinstance(token, str) else None
        if found is None:
            raise InvalidTokenError("it does not have the form wl1.<key id>.<payload>.<signature>, or was cut off")
        key = self._configured.get(found.key_id)
        if key is None and (self._database is not database or found.key_id not in self._stored):
            rows = yield database.read, database.aread, (external_waits.secrets,)
            self._keep(database, rows)
        key = key or self._stored.get(found.key_id)
        if key is None:
            raise InvalidTokenError(
                "it was signed with a key that is not known here: keep old keys in pipelines.token_keys"
            )
        content = content_of(found, key)
        if content is None:
            raise InvalidTokenError("its signature is not valid: it was changed, or signed with another key of this id")
        return content

    def _keep(self, database: Database, rows: Sequence[tuple[str, str]]) -> None:
        self._stored = {key_id: TokenKey(key_id, secret.encode()) for key_id, secret in rows}
        self._database = database
