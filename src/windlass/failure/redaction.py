"""Finds what must not be stored, logged or published, in any text: credentials, tokens, keys, e-mail addresses.

Every pattern runs in linear time, because messages come from users' users. The house rules for that: a pattern begins
with something rare (`://`, a key word) or is only tried at the start of a word, and what may repeat is bounded or
consumed whether or not it turns out to be a secret, so that no character is looked at once per possible beginning.

Where prose and secret look alike (`token: expired`) the text is taken for a secret: a word too few in an error message
costs less than a leaked key.
"""

import re
from re import Match

from windlass.failure.url_credentials import redact_url_credentials

REDACTED = "[REDACTED]"

# Names of values that are secret. What stands before one does not matter (DB_PASSWORD, refreshToken); what stands
# after it does: max_tokens, token_type and secret_name are harmless.
_NAME = r"""(?:
    pass(?:word|wd|phrase|code) | pwd
  | secret (?: [_-]?(?:access[_-]?)?key )?
  | token
  | (?:api|access|account|private|signing|encryption|master|shared|auth|license) [_-]?key
  | authorization
  | session[_-]?(?:id|key) | sess(?:ion)?id | csrf | xsrf
)(?: [_-]?(?:hash|value|b64|base64|plain|text|[0-9]{1,2}) )?"""
# These are words of prose too, so they must look like a parameter: `session=…` or `"session": …`.
_WEAK_NAME = r"(?:session | signature | credentials? | auth | pass | sig)"

# A quoted value ends at the same quote, with the same number of backslashes before it (JSON inside JSON), or at the end
# of its line when it was cut off.
_QUOTED = r"""[bru]{0,2}(?P<quote>\\*["']) (?:(?!(?P=quote))(?:\\[^\n]|[^\\\n]))*+ (?P=quote)?"""
_BRACKETED = r"(?:[\w.]{1,64}+\( | [\[({]) [^\])}\n]*+ [\])}]?"
# A bare one ends where a list, query or connection string goes on; brackets that only close what was opened before the
# name are left in place.
_BARE = r"""[^\s,;&"'<>\[\](){}] (?:[^\s,;&"'<>]*[^\s,;&"'<>)\]}\\])?"""
_SCHEME = r"(?:(?:bearer|basic|digest|token|apikey)\s{1,8})?"
_VALUE = rf"""(?! {_SCHEME} \\*["']?\[REDACTED\]) {_SCHEME} (?:{_QUOTED} | {_BRACKETED} | {_BARE})"""

_FLAGS = re.IGNORECASE | re.VERBOSE
_NAMED = re.compile(
    rf"""(?P<name>{_NAME} \\*["']? \]? \s{{0,8}}+ (?> => | := | ={{1,3}} | :(?!:|//) ) \s{{0,8}}+){_VALUE}""",
    _FLAGS,
)
_WEAKLY_NAMED = re.compile(
    rf"""(?P<name>(?: (?<![a-z]){_WEAK_NAME}= | ["']{_WEAK_NAME}["']\s{{0,8}}:\s{{0,8}}+ )){_VALUE}""", _FLAGS
)
_OPTION = re.compile(
    rf"""(?P<name>(?<![\w-])--[\w-]{{0,40}}?{_NAME}(?: ["'],\s{{0,8}}+(?=["']) | \s{{1,8}}+(?!-) )){_VALUE}""",
    _FLAGS,
)
_ELEMENT = re.compile(rf"(?P<name><[\w:-]{{0,40}}?{_NAME}>)(?!\[REDACTED\])[^<\n]+", _FLAGS)
_QUERY = re.compile(r"(?P<name>[?&](?:key|sid|code)=)(?!\[REDACTED\])[^\s&#\"'<>]{6,}", re.IGNORECASE)
_COOKIE = re.compile(r"(?P<name>\bcookie[\"']?:\s{0,8}+[\"']?+)(?!\[REDACTED\])[^\n\"']+", re.IGNORECASE)
_NAME_PARTS = ("pass", "pwd", "secret", "token", "key", "auth", "sess", "csrf", "xsrf", "sig", "credential")

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# "Bearer authentication", "basic checks" and "Basic HTTP" are prose: one ordinary word is no token.
_BEARER = re.compile(
    r"""\b(?P<name>[Bb](?:earer|EARER|asic|ASIC)\s{1,8})
        (?! (?:[A-Za-z][a-z'-]{0,18} | [A-Z]{1,6}) (?![\w+/.~=-]) | [a-z_]{1,20}=[^=\s] )
        [\w+/.~-]{4,}=*""",
    re.VERBOSE,
)
_WELL_KNOWN = re.compile(
    r"""(?:(?<![A-Za-z0-9_-]) | (?<=\\[nrt]))(?:
        eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*){0,3}                        # JSON web tokens
      | (?:AKIA|ASIA|AROA|AIDA|ANPA|AGPA)[A-Z0-9]{16}(?![A-Za-z0-9])    # AWS
      | AIza[\w-]{30,} | ya29\.[\w-]{10,}                               # Google
      | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}       # GitHub, GitLab
      | xox[a-z]-[\w-]{10,}                                             # Slack
      | (?:sk|pk|rk)_(?:live|test)_\w{8,} | whsec_[\w+/=]{8,}           # Stripe
      | sk-[\w-]{20,} | hf_\w{20,} | npm_\w{20,} | pypi-[\w-]{20,} | SG\.[\w-]{10,}\.[\w-]{10,}
    )""",
    re.VERBOSE,
)
# Tried at the start of a word only; `git@github.com:owner/repo` is no person.
_EMAIL = re.compile(r"(?<![\w.%+-])(?!git@)[\w.%+-]++@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")


def redact(text: str, *, emails: bool = True) -> str:
    """Replace every secret in `text` by `[REDACTED]`; a text without any is returned as it is.

    Example: `redact("login failed: password=hunter2") == "login failed: password=[REDACTED]"`
    """
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(REDACTED, text)
    if "@" in text:
        text = redact_url_credentials(text, REDACTED)
    text = _WELL_KNOWN.sub(REDACTED, text)
    text = _redact_named(text)
    if emails and "@" in text:
        text = _EMAIL.sub(REDACTED, text)
    return text


def _redact_named(text: str) -> str:
    lowered = text.lower()
    if any(part in lowered for part in _NAME_PARTS):
        text = _NAMED.sub(_keep_name, text)
        text = _WEAKLY_NAMED.sub(_keep_name, text)
        if "--" in text:
            text = _OPTION.sub(_keep_name, text)
        if "</" in text:
            text = _ELEMENT.sub(_keep_name, text)
    if "bearer" in lowered or "basic" in lowered:
        text = _BEARER.sub(_keep_name, text)
    if "cookie" in lowered:
        text = _COOKIE.sub(_keep_name, text)
    if "?" in text or "&" in text:
        text = _QUERY.sub(_keep_name, text)
    return text


def _keep_name(match: Match[str]) -> str:
    quote = match.groupdict().get("quote") or ""
    return f"{match['name']}{quote}{REDACTED}{quote}"
