"""Finds what must not be stored, logged or published, in any text: credentials, tokens, keys, e-mail addresses.

Every pattern runs in linear time, because messages come from users' users. The rules for that: a pattern begins
with something rare (`://`, a key word) or is only tried at the start of a word, and what may repeat is bounded or
consumed whether or not it turns out to be a secret, so that no character is examined once per possible start.

Where prose and secrets look alike (`token: expired`) the text is treated as a secret: a missing word in an error
message costs less than a leaked key.
"""

import re
from typing import Final

from windlass.failure.command_lines import redact_command_lines
from windlass.failure.disguised_names import plain_names
from windlass.failure.known_tokens import redact_known_tokens
from windlass.failure.named_values import redact_named_values
from windlass.failure.url_credentials import redact_url_credentials

REDACTED: Final = "[REDACTED]"

# Tried at the start of a word only; `git@github.com:owner/repo` is no person.
_EMAIL = re.compile(r"(?<![\w.%+-])(?!git@)[\w.%+-]++@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")


def redact(text: str, *, emails: bool = True) -> str:
    """Replace every secret in `text` by `[REDACTED]`; a text without any is returned as it is.

    Example: `redact("login failed: password=hunter2") == "login failed: password=[REDACTED]"`
    """
    text = plain_names(text)
    if "@" in text or "%40" in text:
        text = redact_url_credentials(text, REDACTED)
    text = redact_known_tokens(text, REDACTED)
    text = redact_named_values(text, REDACTED)
    text = redact_command_lines(text, REDACTED)
    if emails and "@" in text:
        text = _EMAIL.sub(REDACTED, text)
    return text
