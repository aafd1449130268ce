"""Characters that act on a terminal instead of being shown: escapes, C0 and C1 controls, bidirectional marks.

A message that contains them could clear the screen, hide text or imitate a line of its own. Text for people has a
replacement sign in their place; JSON has them escaped, which changes nothing for programs.
"""

from typing import Final

_KEPT: Final = {ord("\t"), ord("\n")}
_CONTROLS: Final = frozenset(
    {*range(0x20), *range(0x7F, 0xA0)}  # C0, DEL and C1
    | {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # direction of writing
    | {0x2028, 0x2029}  # line and paragraph separators
)
_SHOWN: Final = dict.fromkeys(_CONTROLS - _KEPT, "\N{REPLACEMENT CHARACTER}")
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 0x7F}


def visible(text: str) -> str:
    """Replace control characters by a sign; newlines and tabs stay.

    Example: `visible("a\\x1b[2Jb") == "a\\ufffd[2Jb"`
    """
    return text.translate(_SHOWN)


def one_line(text: str) -> str:
    """Do the same as `visible`, on one line: newlines are written as `\\n`.

    Example: `one_line("a\\nb") == "a\\\\nb"`
    """
    return text.replace("\n", "\\n").translate(_SHOWN)


def indented(text: str, by: str = "    ") -> str:
    """Do the same as `visible`, with the lines after the first indented, so that none imitates another output line."""
    return visible(text).replace("\n", f"\n{by}")


def json_escaped(text: str) -> str:
    """Escape control characters in a JSON text; in valid JSON they can only stand inside of strings."""
    return text.translate(_ESCAPED)
