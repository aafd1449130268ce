"""Names of secrets with disguised letters: invisible characters in between, or full-width letters."""

import re
from re import Match
from typing import Final

# Between two ASCII letters only: emoji and other scripts need some of these. As they are, or as JSON and repr
# write them.
_INVISIBLE: Final = re.compile(
    r"(?<=[A-Za-z])(?:[\u00ad\u200b-\u200d\u2060\ufeff]|\\{1,8}(?:u00ad|xad|u200[bcd]|u2060|ufeff))++(?P<inside>(?=[A-Za-z]))?"
)
_FULL_WIDTH: Final = re.compile(r"(?:[\uff0d\uff21-\uff3a\uff3f\uff41-\uff5a]|\\{1,8}uff[0-5][0-9a-f]){3,40}")
_ESCAPE: Final = re.compile(r"\\+u(ff[0-5][0-9a-f])")
_NAME: Final = re.compile(r"pass|pwd|secret|token|key|auth|session|credential", re.IGNORECASE)
_TO_ASCII: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def plain_names(text: str) -> str:
    """Write the letters of a disguised name as ASCII, so that it is recognised; other texts stay unchanged."""
    if text.isascii() and "\\" not in text:
        return text
    return _FULL_WIDTH.sub(_as_ascii, _INVISIBLE.sub(_without_invisible, text))


def _without_invisible(match: Match[str]) -> str:
    return match.group() if match["inside"] is None else ""


def _as_ascii(match: Match[str]) -> str:
    letters = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), match.group())
    plain = letters.translate(_TO_ASCII)
    return plain if _NAME.search(plain) else match.group()
