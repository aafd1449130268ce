"""Signed tokens that allow their holder to answer a waiting step: `wl1.<key id>.<payload>.<mac>`. Pure.

The payload names the wait and the deadline; it is not secret, only signed (HMAC-SHA256). Nothing here echoes a token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final, NamedTuple

from windlass.domain.external_wait import WaitKey

PREFIX: Final = "wl1"
LONGEST: Final = 4_096
_KEY_ID_LENGTH: Final = 12


class TokenKey:
    """A key that signs and verifies; its repr names its id only."""

    __slots__ = ("_begun", "key_id")

    def __init__(self, key_id: str, secret: bytes) -> None:
        self.key_id = key_id
        self._begun = hmac.new(secret, digestmod=hashlib.sha256)
        """Copied for each text: to begin costs more than all the rest."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key_id}>"

    def mac(self, text: str) -> str:
        """Return the signature of a text."""
        made = self._begun.copy()
        made.update(text.encode())
        return _encoded(made.digest())


class TokenContent(NamedTuple):
    """The content of a token."""

    key: WaitKey
    deadline: int
    """Microseconds since 1970."""


class ReadToken(NamedTuple):
    """A token whose form is right, and whose signature was not checked yet."""

    key_id: str
    signed: str
    mac: str
    payload: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of key {self.key_id}>"


def key_of(secret: str) -> TokenKey:
    """Return a configured secret as a key, whose id follows from it."""
    digest = hashlib.sha256(b"windlass token key " + secret.encode()).hexdigest()
    return TokenKey(digest[:_KEY_ID_LENGTH], secret.encode())


def sign(key: TokenKey, content: TokenContent) -> str:
    """Return the token of a wait."""
    text = json.dumps([*content.key, content.deadline], separators=(",", ":"))
    signed = f"{PREFIX}.{key.key_id}.{_encoded(text.encode())}"
    return f"{signed}.{key.mac(signed)}"


def read(token: str) -> ReadToken | None:
    """Return the parts of a token; None if it does not have that form."""
    parts = token.split(".") if len(token) <= LONGEST and token.isascii() else []
    if len(parts) != 4 or parts[0] != PREFIX or not all(parts):
        return None
    return ReadToken(parts[1], ".".join(parts[:3]), parts[3], parts[2])


def content_of(token: ReadToken, key: TokenKey) -> TokenContent | None:
    """Return the content of a token; None if its signature was not made with the key. Compares in constant time."""
    if not hmac.compare_digest(key.mac(token.signed).encode(), token.mac.encode()):
        return None
    try:
        execution, step, path, number, deadline = json.loads(_decoded(token.payload))
        return TokenContent(WaitKey(str(execution), int(step), str(path), int(number)), int(deadline))
    except (ValueError, TypeError, binascii.Error):
        return None


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
