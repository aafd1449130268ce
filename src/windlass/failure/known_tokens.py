"""Secrets that are recognised by their form alone: private keys, tokens of well-known services."""

import re
from re import Match

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# The end of a key whose beginning was cut off: lines of base64, the last of them perhaps short. Whatever looks like
# them is consumed, also without the closing line, so that no character is looked at twice.
_BASE64 = r"[A-Za-z0-9+/=]"
_LINE_BREAK = r"(?:[\s|]|\\++[nrt])"
_KEY_END = re.compile(
    rf"""(?<![A-Za-z0-9+/=])(?:{_BASE64}{{16,}}+{_LINE_BREAK}++)*+(?:{_BASE64}{{1,15}}+{_LINE_BREAK}++){{0,2}}+
        (?P<end>-----END[ ][A-Z0-9 ]{{0,40}}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----)?""",
    re.VERBOSE,
)
# A line of .pgpass: host:port:database:user:password
_PGPASS = re.compile(
    r"""(?<![\w.:/*-])(?P<name>(?=[\w.-]{0,255}?[A-Za-z*])[\w.*-]{1,255}+:(?:[0-9]{2,5}|\*)
        (?::[^\s:\\"'/]{1,64}){2}:)(?!\[REDACTED\])[^\s"'\\]+""",
    re.VERBOSE,
)
# Words of ordinary names (`sk-learn-contrib`, `npm_config_cache`) have no digits, and dashes or underscores in between.
_TOKEN = re.compile(
    r"""(?:(?<![A-Za-z0-9_-]) | (?<=\\[nrt]))(?:
        eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*){0,3}                                # JSON web tokens
      | wl1\.[\w-]{1,64}\.[\w-]{5,}(?:\.[\w-]*)?                                # answers to steps that wait outside
      | (?:AKIA|ASIA|AROA|AIDA|ANPA|AGPA)[A-Z0-9]{16}(?![A-Za-z0-9])            # AWS: the id, and the key next to it
            (?:["',;:|\s/]{1,4}[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=]))?
      | AIza[\w-]{30,} | ya29\.[\w-]{10,} | GOCSPX-[\w-]{20,}                   # Google
      | gh[pousr]_\w{20,} | github_pat_\w{20,} | gl(?:pat|rt|dt|cbt|ptt|ft|soat|agent)-[\w-]{16,}
      | xox[a-z]-[\w-]{10,} | xapp-[\w-]{20,}                                   # Slack
      | (?:sk|pk|rk)_(?:live|test)_\w{8,} | whsec_[\w+/=]{8,}                   # Stripe
      | sk-(?:[A-Za-z0-9]{20}|(?=[\w-]{0,100}[0-9])[\w-]{20})[\w-]* | hf_[A-Za-z0-9]{20,}      # OpenAI, Anthropic …
      | npm_[A-Za-z0-9]{20,} | pypi-(?=[\w-]{0,100}[0-9])[\w-]{20,} | rubygems_[0-9a-f]{20,}
      | [\w~.-]{0,3}[0-9]Q~[\w~.-]{20,}                                          # Azure client secrets
      | AC[0-9a-f]{32}["',;:|\s/]{1,6}[0-9a-f]{32}\b                             # Twilio: the id and its token
      | SG\.[\w-]{10,}\.[\w-]{10,} | key-[0-9a-f]{32}\b | SK[0-9a-f]{32}\b      # SendGrid, Mailgun, Twilio
      | dop_v1_[0-9a-f]{20,} | dapi[0-9a-f]{32}(?:-[0-9])?\b | dckr_pat_[\w-]{20,} | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}
      | hv[sbr]\.[\w-]{20,} | glsa_\w{20,} | sntrys_[\w+/=]{20,} | lin_api_\w{20,} | NRAK-[A-Z0-9]{20,}
      | ATATT3[\w=-]{20,} | pscale_(?:tkn|pw|oauth)_[\w.-]{16,} | sbp_[0-9a-f]{20,} | sq0(?:atp|csp)-[\w-]{16,}
      | AGE-SECRET-KEY-1[A-Z0-9]{20,} | dp\.(?:pt|st|ct|sa)\.[\w.]{20,} | [0-9]{8,10}:AA[\w-]{30,}
      | \$2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{53} | \$argon2(?:id|i|d)\$[^\s"']{20,}
      | \$[156]\$[^\s$"']{1,40}\$[./\w]{20,}
    )""",
    re.VERBOSE,
)
# None of them is shorter, and most messages have no such word.
_LONG_TOKEN = re.compile(r"[\w.$:~-]{12}")
# Addresses that are themselves the secret.
_ADDRESS = re.compile(
    r"""(?P<name>hooks\.slack\.com/(?:services|workflows|triggers)/ | discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/
        | api\.telegram\.org/(?:file/)?bot | webhook\.office\.com/webhookb2/)
        (?!\[REDACTED\])[^\s"'<>?&]{8,}?(?=/(?:send|get|edit)|[\s"'<>?&,;)]|\Z)""",
    re.VERBOSE,
)


def redact_known_tokens(text: str, replacement: str) -> str:
    """Replace everything that is recognised by its form."""
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(replacement, text)
    if "-----END" in text:

        def drop_key(match: Match[str]) -> str:
            return match.group() if match["end"] is None else replacement

        text = _KEY_END.sub(drop_key, text)
    if _LONG_TOKEN.search(text):
        text = _TOKEN.sub(replacement, text)

    def keep_name(match: Match[str]) -> str:
        return match["name"] + replacement

    if text.count(":") >= 4:
        text = _PGPASS.sub(keep_name, text)
    if "hook" in text or "telegram" in text:
        text = _ADDRESS.sub(keep_name, text)
    return text
