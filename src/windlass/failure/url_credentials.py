"""Redaction of user names and passwords before a host: in URLs, connection strings, and `user:password@host`."""

import re
from re import Match

_URL_REST = re.compile(r"""://[^\s"'<>`]+""")
_SCHEME_END = re.compile(r"[A-Za-z0-9+.-]*\Z")
_LONGEST_SCHEME = 32
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
# Only with these can an @ stand somewhere after the host.
_WEB_SCHEMES = frozenset({"file", "ftp", "git", "http", "https", "ssh", "ws", "wss"})

_ORACLE = re.compile(
    r"(?P<name>\boracle:(?:thin|oci)[0-9]?:)(?!\[)[^\s/@\"']{1,128}/[^\s@\"']{1,128}(?=@)", re.IGNORECASE
)
# Without a scheme, what is before the @ may also be a person's address.
_USER_AT_HOST = re.compile(
    r"""(?<=\w)(?<!\bmailto)(?<!\bemail)(?<!\bfrom)(?<!\bto)(?<!\bcc)
        (?P<name>:)(?!\[)[^\s:@/"'<>,;]{1,128}(?=@(?!sha256:)[\w(\[])""",
    re.VERBOSE,
)
# The same in a query or a form, where `:`, `/` and `@` are written as %3A, %2F and %40.
_ENCODED = re.compile(
    r"""(?P<name>%(?:25)?3A(?:%(?:25)?2F){2})(?!\[REDACTED\])
        (?:(?!%(?:25)?40)[^\s&"'<>;,]){1,256}+(?=%(?:25)?40)""",
    re.IGNORECASE | re.VERBOSE,
)


def redact_url_credentials(text: str, replacement: str) -> str:
    """Replace all credentials before an @."""

    def keep_name(match: Match[str]) -> str:
        return match["name"] + replacement

    def clean_url(match: Match[str]) -> str:
        return _clean_url(match, replacement)

    if "://" in text:
        text = _URL_REST.sub(clean_url, text)
    text = _ORACLE.sub(keep_name, text)
    if "%40" in text:
        text = _ENCODED.sub(keep_name, text)
    return _USER_AT_HOST.sub(keep_name, text)


def _clean_url(match: Match[str], replacement: str) -> str:
    """Clean `://…`, and the URLs within it (`jdbc:x://h?proxy=http://u:p@h`)."""
    url: str = match.group()
    if "@" not in url:
        return url
    parts = url.split("://")
    parts[0] = match.string[max(match.start() - _LONGEST_SCHEME, 0) : match.start()]
    for number in range(1, len(parts)):
        is_web = _scheme(parts[number - 1]) in _WEB_SCHEMES
        end = _end_of_web_credentials(parts[number]) if is_web else _end_of_dsn_credentials(parts[number])
        if end > 0:
            parts[number] = replacement + parts[number][end:]
    return "://".join(["", *parts[1:]])


def _scheme(before: str) -> str:
    """Return the scheme at the end of `before`: "https" for "see git+https"."""
    match = _SCHEME_END.search(before[-_LONGEST_SCHEME:])
    return match.group().lower().rpartition("+")[2] if match else ""


def _end_of_web_credentials(rest: str) -> int:
    """Return where credentials end, or -1: before the path, or later if a password has an unescaped slash."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    end = authority.rfind("@")
    if end >= 0 or rest.startswith("[") or ":" not in authority or _PORT.match(rest, authority.index(":") + 1):
        return end
    return rest.find("@")


def _end_of_dsn_credentials(rest: str) -> int:
    """Return the same for databases and brokers, where no @ can follow the host: the last @ counts."""
    rest = rest if "@" in rest.partition(";")[0] else ""  # sqlserver://host;password=p@ss: properties, not credentials
    authority, slash, _ = rest.partition("/")
    if slash and ":" not in authority and "@" not in authority:  # s3://bucket/file@version
        return -1
    return rest.rfind("@")
