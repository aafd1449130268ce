"""Secrets that are recognised by their name: `password=…`, `"api_key": "…"`, `--token …`, in every notation."""

import re
from re import Match

# Names of values that are secret. What stands before one does not matter (DB_PASSWORD, refreshToken); what stands
# after it does: max_tokens, token_type and secret_name are harmless.
_NAME = r"""(?:
    pass(?:word|wd|phrase|code|wort) | pwd | (?:(?<![a-z])|bind|root|user|admin|db)pw
  | kennwort | senha | contrase[ñn]a | mot[_-]?de[_-]?passe | парол[ья] | 密码 | 密碼 | パスワード
  | \\u043f\\u0430\\u0440\\u043e\\u043b\\u044c | contrase\\u00f1a | \\u5bc6\\u7801  # as JSON writes them
  | secret (?: [_-]?(?:access[_-]?)?key )?
  | token | jwt | mnemonic
  | (?:api|access|account|private|signing|encryption|master|shared|auth|license|clickhouse|storage) [ _-]?key
  | client[_-]?key[_-]?data | (?:(?<![a-z])|wpa)psk
  | authorization
  | session[_-]?(?:id|key) | sess(?:ion)?id | csrf | xsrf
)(?: [_-]?(?:hash|value|b64|base64|plain|text|[0-9]{1,2}) )?"""
# These are words of prose too, so they must look like a parameter: `session=…` or `"session": …`.
_WEAK_NAME = r"(?:session | signature | credentials? | auth | pass | sig | otp | pin)"

# A quoted value ends at the same quote, or at the end of its line when it was cut off. Inside of other quotes (JSON in
# JSON, a repr) its own have backslashes before them: exactly as many end it, and more belong to it.
_QUOTED = r"""[bru]{0,2}(?P<quote>\\*+(?:\'\'\'|\"\"\"|["'])) (?:(?!(?P=quote))(?:\\++["']?|[^\\\n]))*+ (?P=quote)?"""
_BRACKETED = r"""(?:
    (?<==)\{(?:[^}\n]|\}\})*+\}?
  | (?:[\w.]{1,64}+\( | [\[({]) [^\])}\n]*+ [\])}]?
)"""
# A bare one ends where a list, query or connection string goes on, or the next line of a text that was put in quotes;
# brackets that only close what was opened before the name are left in place.
_NEXT_LINE = r"""\\++[nrt](?: [\w.-]{1,60}+\s?[:=] | [\s\\"'-] | \Z )"""
_BARE = rf"""[^\s,;&"'<>\[\](){{}}] (?: (?:[^\s,;&"'<>\\] | (?!{_NEXT_LINE})\\)* [^\s,;&"'<>)\]}}\\] )?"""
_SCHEME = r"(?:(?:bearer|basic|digest|token|apikey|(?:\\++n|[\s|]){0,60}+string\([0-9]{1,7}\))\s{1,8})?"
# No value yet: placeholders of statements, nothing at all, a type, the mark of a block that follows.
_EMPTY = r"""(?: (?:
    None | null | nil | true | false | undefined | %s | \? | \$[0-9]{1,2} | %\(\w{1,40}\)s | '' | "" | \\"\\"
  | '[^\w\s]' | "[^\w\s]"  # a sign, as parsers name it
  | (?:str|bytes|string|SecretStr) (?:\s?\|\s?None)?
) (?= [\s,;&)\]}|] | \Z ) | [|>][+0-9-]{0,2}[ ]{0,4}(?:\n|\\++n) )"""
_VALUE = rf"""(?! {_SCHEME} \\*["']*\[REDACTED\] | {_EMPTY}) {_SCHEME} (?:{_QUOTED} | {_BRACKETED} | {_BARE})"""
_TYPED = r":\s?(?:str|bytes|SecretStr)(?:\s?\|\s?None)?\s{0,2}=(?!=)"
_EQUALS = rf"(?> {_TYPED} | => | := | ={{1,3}} | :(?!:|//) | \\++u003[ad] )"

# Between a name and its value: "client secret provided: x", "the password is: x".
_FILLER = r"(?:\s(?:is|was|value|given|provided|supplied)){0,2}+"

_FLAGS = re.IGNORECASE | re.VERBOSE
_NAMED = re.compile(rf"""(?P<name>{_NAME} \\*["']? \]? {_FILLER} \s{{0,8}}+ {_EQUALS} \s{{0,8}}+){_VALUE}""", _FLAGS)
# Three quotes hold several lines; each of them has a backslash before it inside of other quotes.
_TRIPLE = re.compile(
    rf"""(?P<name>{_NAME} \\*["']? \]? \s{{0,8}}+ {_EQUALS} \s{{0,8}}+)
        (?P<quote>(?:\\*+"){{3}}|(?:\\*+'){{3}})(?!\[REDACTED\])(?s:(?:(?!(?P=quote)).)*+)(?P=quote)?""",
    _FLAGS,
)
# Prose, where the word after it cannot be prose: it has a letter and a digit.
_PROSE = re.compile(
    r"""(?P<name>\b(?:password|passphrase|passcode|api[ ]key|secret[ ]key)\s(?:(?:is|was)\s)?["']?)
        (?!\[REDACTED\])(?=[^\s"']{0,200}?[0-9])(?=[^\s"']{0,200}?[A-Za-z])[^\s"':=]{6,}(?![\w:=])
      | (?P<other>\bsecret\s)[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])""",
    _FLAGS,
)
_WEAKLY_NAMED = re.compile(
    rf"""(?P<name>(?: (?<![a-z]){_WEAK_NAME}= | ["']{_WEAK_NAME}["']\s{{0,8}}:\s{{0,8}}+ )){_VALUE}""", _FLAGS
)
_OPTION = re.compile(
    rf"""(?P<name>(?<![\w-])--[\w-]{{0,40}}?{_NAME}(?: ["'],\s{{0,8}}+(?=["']) | \s{{1,8}}+(?!-) )){_VALUE}""",
    _FLAGS,
)
# Pairs of a list: ('password', 'x')
_PAIR = re.compile(
    rf"""(?P<name> \([bru]{{0,2}}["'][\w .-]{{0,40}}?{_NAME}["'],\s{{0,8}}+(?=[bru]{{0,2}}["']) ){_VALUE}""", _FLAGS
)
# Entries of a list: {"name": "PASSWORD", "value": "x"}, <add key="password" value="x"/>
_ENTRY = re.compile(
    rf"""(?P<name> {_NAME}\\*["']?(?:[,\s|]|\\++n){{1,60}}+\\*["']?value\\*["']?\s{{0,4}}+[:=]\s{{0,4}}+ ){_VALUE}""",
    _FLAGS,
)
# A statement of SQL, a line of .netrc
_CLAUSE = re.compile(
    rf"""(?P<name> (?:\bpassword|\bidentified\s{{1,4}}(?:with\s{{1,4}}\S{{1,40}}\s{{1,4}})?(?:by|as))\s{{1,4}}+(?=["'])
        | \blogin\s{{1,4}}\S{{1,128}}\s{{1,4}}password\s{{1,4}} ){_VALUE}""",
    _FLAGS,
)
# Lines of a text within quotes have another end, those of a member in the traceback of a group have a margin.
_LINE_END = r"(?: \n(?:[ ]{0,40}\|)? | \\++n )"
_BLOCK = re.compile(
    rf"""(?P<name>{_NAME}["']?:[ ]{{0,4}}[|>][+0-9-]{{0,2}}[ ]{{0,4}}{_LINE_END}(?P<indent>[ \t]{{1,40}}))
        (?:(?!\\++n)[^\n])++ (?: {_LINE_END}(?P=indent)(?:(?!\\++n)[^\n])*+ )*+""",
    _FLAGS,
)
_BLOCK_MARK = re.compile(r":[ ]{0,4}[|>]")
_SENTENCE = re.compile(
    r"""(?P<name>(?:pass[ _-]?phrase|mnemonic|(?:seed|recovery)[ _-]?phrase)\s{0,4}[:=]\s{0,4}+)
        (?!\[REDACTED\])[^\s"'\\<>,;\[({][^\n"'\\<>,;]{0,400}""",
    _FLAGS,
)
# Percent signs hide quotes (22, 27), colons (3A), equals signs (3D) and what ends a value.
_ENCODED = re.compile(
    rf"""(?P<name>{_NAME}(?:%(?:25)?2[27])?%(?:25)?3[AD](?:%(?:25)?2[027]|\+){{0,3}})
        (?!\[REDACTED\])(?:(?!%(?:25)?(?:26|3B|2[27C]|7D))[^\s&;,"'<>])++""",
    _FLAGS,
)
_ELEMENT = re.compile(
    rf"(?P<name><[\w:-]{{0,40}}?{_NAME}>(?:<!\[CDATA\[)?)(?!\[REDACTED\])(?:(?!\]\]>)[^<\n])++", _FLAGS
)
_QUERY = re.compile(r"(?P<name>[?&](?:key|sid|code)=)(?!\[REDACTED\])[^\s&#\"'<>]{6,}", re.IGNORECASE)
_COOKIE = re.compile(
    r"(?P<name>\bcookie[\"']?:\s{0,8}+[\"']?+|<cookie\s[^\s=<>]{1,80}=)(?!\[REDACTED\])[^\n\"'>]+", re.IGNORECASE
)
# Schemes that consist of several values
_CHALLENGED = re.compile(
    r"(?P<name>\bauthorization[\"']?\s?[:=]\s?[\"']?)(?:digest|oauth|hmac|signature|aws4-hmac-sha256)\s[^\n]++",
    re.IGNORECASE,
)
# "Bearer authentication", "basic checks" and "Basic HTTP" are prose: one ordinary word is no token.
_BEARER = re.compile(
    r"""\b(?P<name>[Bb](?:earer|EARER|asic|ASIC)\s{1,8})
        (?! (?:[A-Za-z][a-z'-]{0,18} | [A-Z]{1,6}) (?![\w+/.~=-]) | [a-z_]{1,20}=[^=\s] )
        [\w+/.~-]{4,}=*""",
    re.VERBOSE,
)

_NAME_PARTS = (
    *("pass", "pwd", "pw", "secret", "token", "jwt", "key", "auth", "sess", "csrf", "xsrf", "sig", "credential"),
    *(
        "kennwort",
        "senha",
        "contrase",
        "mot",
        "парол",
        "密",
        "パスワード",
        "u043f",
        "u5bc6",
        "mnemonic",
        "phrase",
        "identified",
        "psk",
        "otp",
        "pin",
    ),
)


def redact_named_values(text: str, replacement: str) -> str:
    """Replace every value whose name says that it is secret."""

    def keep_name(match: Match[str]) -> str:
        groups = match.groupdict()
        quote = groups.get("quote") or ""
        return f"{groups['name'] or groups.get('other')}{quote}{replacement}{quote}"

    lowered = text.lower()
    if any(part in lowered for part in _NAME_PARTS):
        for pattern in _patterns(text, lowered):
            text = pattern.sub(keep_name, text)
    if "bearer" in lowered or "basic" in lowered:
        text = _BEARER.sub(keep_name, text)
    if "cookie" in lowered:
        text = _COOKIE.sub(keep_name, text)
    if "?" in text or "&" in text:
        text = _QUERY.sub(keep_name, text)
    return text


def _patterns(text: str, lowered: str) -> list[re.Pattern[str]]:
    """Return the patterns that can match; the more specific ones come first."""
    found = [_CHALLENGED] if "authorization" in lowered else []
    found += [_BLOCK] if _BLOCK_MARK.search(text) else []
    found += [_SENTENCE] if "phrase" in lowered or "mnemonic" in lowered else []
    found += [_ENCODED] if "%3" in text or "%253" in text else []
    found += [_TRIPLE] if text.count('"') > 2 or text.count("'") > 2 else []
    found += [_NAMED, _WEAKLY_NAMED]
    found += [_PROSE]
    found += [_PAIR] if "('" in text or '("' in text or "(b" in text else []
    found += [_ENTRY] if "value" in lowered else []
    found += [_CLAUSE] if "password" in lowered or "identified" in lowered else []
    found += [_OPTION] if "--" in text else []
    found += [_ELEMENT] if "</" in text else []
    return found
